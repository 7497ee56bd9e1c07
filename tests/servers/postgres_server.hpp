// Real PostgreSQL servers for tests, and PgBouncer before one.
#pragma once

#include <libpq-fe.h>
#include <pwd.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "conformance/temporary_directory.hpp"
#include "eventually.hpp"
#include "servers/process.hpp"

namespace interlock::servers {

/// PostgreSQL refuses to be root: then it is a user that Debian's package made.
class PostgresUser {
 public:
  static std::vector<std::string> words(std::vector<std::string> words) {
    if (::geteuid() == 0) {
      words.insert(words.begin(), {"setpriv", "--reuid=postgres", "--regid=postgres",
                                   "--clear-groups", "--pdeathsig=QUIT"});
    }
    return words;
  }
  static void own(const std::filesystem::path& path) {
    if (::geteuid() == 0 && ::chown(path.c_str(), id(), static_cast<gid_t>(-1)) != 0)
      throw std::runtime_error("can't give " + path.string() + " to the user postgres");
  }
  static bool owns(const std::filesystem::path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && info.st_uid == id();
  }

 private:
  static uid_t id() {
    if (::geteuid() != 0) return ::geteuid();
    const auto* user = ::getpwnam("postgres");
    if (user == nullptr) throw std::runtime_error("there is no user postgres to run PostgreSQL as");
    return user->pw_uid;
  }
};

/// A database directory to copy for each server. `initdb` takes a second, so the first test program that needs one keeps
/// it in the build directory, if it may write there.
class PostgresTemplate {
 public:
  static const std::filesystem::path& directory() {
    static const PostgresTemplate made;
    return made.path_;
  }
  static std::string program(const std::string& name) {
    const auto newest = installation();
    return newest.empty() ? name : (newest / "bin" / name).string();
  }

 private:
  PostgresTemplate() : path_(kept_path()) {
    if (PostgresUser::owns(path_)) return;
    const auto fresh = directory_.path() / "data";
    make(fresh);
    // Other test programs may do the same now. The first to rename has made it.
    const auto draft = path_.string() + "." + std::to_string(::getpid());
    std::error_code failed;
    if (copy(fresh, draft)) std::filesystem::rename(draft, path_, failed);
    std::error_code ignored;
    std::filesystem::remove_all(draft, ignored);
    if (!PostgresUser::owns(path_)) path_ = fresh;
  }

  // Of the newest version; empty: wherever PATH leads.
  static std::filesystem::path installation() {
    std::filesystem::path newest;
    for (const auto* root : {"/usr/lib/postgresql", "/usr/pgsql"}) {
      if (!std::filesystem::exists(root)) continue;
      for (const auto& entry : std::filesystem::directory_iterator(root)) {
        if (std::filesystem::exists(entry.path() / "bin" / "initdb"))
          newest = std::max(newest, entry.path());
      }
    }
    return newest;
  }
  static std::filesystem::path kept_path() {
    return std::string(INTERLOCK_TEST_CACHE) + "/postgres-" + installation().filename().string();
  }
  void make(const std::filesystem::path& path) const {
    PostgresUser::own(directory_.path());
    const auto log = (directory_.path() / "initdb.log").string();
    if (run(PostgresUser::words({program("initdb"), "-D", path.string(), "-U", "postgres", "-E",
                                 "UTF8", "--no-locale", "--auth=trust", "--no-sync"}),
            log) != 0) {
      std::ifstream file(log);
      throw std::runtime_error("initdb failed: " +
                               std::string(std::istreambuf_iterator<char>(file), {}));
    }
  }
  [[nodiscard]] bool copy(const std::filesystem::path& from, const std::string& to) const {
    return run({"cp", "-a", from.string(), to}, (directory_.path() / "cp.log").string()) == 0;
  }

  TemporaryDirectory directory_;
  std::filesystem::path path_;
};

/// One at a time; connects again when it has to.
class PostgresConsole {
 public:
  /// Without TLS, and so without OpenSSL, which would not outlive what our clients do at the end.
  explicit PostgresConsole(const std::string& url) : url_(url + "?sslmode=disable") {}

  /// The rows as lines, with | between the columns; an error's SQLSTATE as "(42501)"; "(nothing)" if
  /// there is no server.
  std::string operator()(const std::string& sql) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (!connection_ || PQstatus(connection_.get()) != CONNECTION_OK) {
        connection_.reset(PQconnectdb(url_.c_str()));
        PQsetNoticeProcessor(
            connection_.get(), [](void*, const char*) {}, nullptr);
      }
      if (PQstatus(connection_.get()) != CONNECTION_OK) continue;
      const std::unique_ptr<PGresult, decltype(&PQclear)> result(
          PQexec(connection_.get(), sql.c_str()), PQclear);
      if (PQstatus(connection_.get()) != CONNECTION_OK) continue;
      const auto status = PQresultStatus(result.get());
      if (status == PGRES_TUPLES_OK) return to_text(*result);
      if (status == PGRES_COMMAND_OK) return "";
      return "(" + std::string(PQresultErrorField(result.get(), PG_DIAG_SQLSTATE)) + ")";
    }
    return "(nothing)";
  }
  void leave() { connection_.reset(); }

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  static std::string to_text(const PGresult& result) {
    std::string text;
    for (int row = 0; row < PQntuples(&result); ++row) {
      if (row > 0) text += '\n';
      for (int column = 0; column < PQnfields(&result); ++column) {
        if (column > 0) text += '|';
        text += PQgetvalue(&result, row, column);
      }
    }
    return text;
  }

  std::string url_;
  std::unique_ptr<PGconn, Finish> connection_;
};

class PostgresServer {
 public:
  /// `under`: a program to run it under.
  explicit PostgresServer(std::vector<std::string> options = {},
                          std::vector<std::string> under = {})
      : options_(std::move(options)), under_(std::move(under)) {
    PostgresUser::own(directory_.path());
    const auto log = (directory_.path() / "cp.log").string();
    if (run({"cp", "-a", PostgresTemplate::directory().string(), data().string()}, log) != 0)
      throw std::runtime_error("can't copy the database directory; see " + log);
    start();
  }
  struct StandbyOf {
    const PostgresServer& primary;
  };
  explicit PostgresServer(StandbyOf of, std::vector<std::string> options = {})
      : options_(std::move(options)) {
    PostgresUser::own(directory_.path());
    follow(of.primary);
  }

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// libpq understands it, and Interlock with options added to it.
  [[nodiscard]] std::string url(const std::string& user = "postgres") const {
    return "postgres://" + user + "@" + address() + "/postgres";
  }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }
  [[nodiscard]] std::filesystem::path data() const { return directory_.path() / "data"; }
  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] PostgresConsole& console() {
    if (!console_) console_.emplace(url());
    return *console_;
  }

  /// SIGKILL: as if the machine had crashed. SIGINT: it ends its sessions and leaves in order.
  void stop(int signal = SIGKILL) {
    process_->end(signal);
    // Its children notice a moment later, and hold its memory until then.
    (void)testing_support::eventually([&] { return !in_use() && !listens(port_); });
  }
  /// On the same port, once it had one.
  void start() {
    const auto log = (directory_.path() / "log").string();
    const bool fixed = port_ != 0;
    for (int attempt = 0; attempt < 20; ++attempt) {
      if (!fixed) port_ = free_port();
      std::vector<std::string> words{PostgresTemplate::program("postgres"),
                                     "-D",
                                     data().string(),
                                     "-p",
                                     std::to_string(port_),
                                     "-k",
                                     directory_.path().string(),
                                     "-c",
                                     "listen_addresses=127.0.0.1"};
      for (const auto* setting : {"fsync=off", "max_connections=60", "shared_buffers=16MB",
                                  "autovacuum_naptime=5s", "log_min_messages=warning"}) {
        words.insert(words.end(), {"-c", setting});
      }
      for (const auto& option : options_) words.insert(words.end(), {"-c", option});
      words.insert(words.begin(), under_.begin(), under_.end());
      process_.emplace(PostgresUser::words(std::move(words)), log);
      PostgresConsole probe(url());
      if (testing_support::eventually(
              [&] { return process_->over() || probe("SELECT 1") == "1"; }) &&
          !process_->over()) {
        return;
      }
    }
    throw std::runtime_error("PostgreSQL does not start; see " + log);
  }
  void restart() {
    stop(SIGINT);
    start();
  }
  /// Begins anew as a standby of this one.
  void follow(const PostgresServer& primary) {
    if (process_) stop();
    std::filesystem::remove_all(data());
    const auto log = (directory_.path() / "basebackup.log").string();
    if (run(PostgresUser::words({PostgresTemplate::program("pg_basebackup"), "-h", "127.0.0.1",
                                 "-p", std::to_string(primary.port()), "-U", "postgres", "-D",
                                 data().string(), "-R", "-c", "fast", "--no-sync"}),
            log) != 0)
      throw std::runtime_error("no standby can be made; see " + log);
    start();
  }
  /// Each of its processes works in the directory of its data.
  [[nodiscard]] std::vector<pid_t> processes() const {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      if (std::filesystem::read_symlink(process.path() / "cwd", error) == data())
        found.push_back(std::stoi(process.path().filename().string()));
    }
    return found;
  }

 private:
  [[nodiscard]] bool in_use() const { return !processes().empty(); }

  TemporaryDirectory directory_;
  std::vector<std::string> options_;
  std::vector<std::string> under_;
  int port_ = 0;
  std::optional<Process> process_;
  std::optional<PostgresConsole> console_;
};

/// PgBouncer, a few connections to the server, each given to whoever has a transaction.
class PgBouncer {
 public:
  explicit PgBouncer(const PostgresServer& server, const std::string& mode = "transaction") {
    PostgresUser::own(directory_.path());
    const auto file = directory_.path() / "pgbouncer.ini";
    for (int attempt = 0; attempt < 20; ++attempt) {
      port_ = free_port();
      {
        std::ofstream out(file);
        out << "[databases]\npostgres = host=127.0.0.1 user=postgres port=" << server.port()
            << "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port_
            << "\nunix_socket_dir =\nauth_type = any\npool_mode = " << mode
            << "\ndefault_pool_size = 4\nmax_client_conn = 1000\nserver_login_retry = 1\n";
        out << "logfile = " << (directory_.path() / "log").string() << "\n";
      }
      launch();
      if (serves()) return;
    }
    throw std::runtime_error("PgBouncer does not start; see " + output());
  }

  [[nodiscard]] std::string url() const {
    return "postgres://postgres@127.0.0.1:" + std::to_string(port_) + "/postgres";
  }
  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] Process& process() { return *process_; }
  void stop(int signal = SIGKILL) { process_->end(signal); }
  /// On the same port.
  void start() {
    launch();
    if (!serves()) throw std::runtime_error("PgBouncer does not start; see " + output());
  }

 private:
  [[nodiscard]] std::string output() const { return (directory_.path() / "output").string(); }
  void launch() {
    process_.emplace(
        PostgresUser::words({program(), (directory_.path() / "pgbouncer.ini").string()}), output());
  }
  [[nodiscard]] bool serves() {
    PostgresConsole probe(url());
    return testing_support::eventually(
               [&] { return process_->over() || probe("SELECT 1") == "1"; }) &&
           !process_->over();
  }
  static std::string program() {
    return std::filesystem::exists("/usr/sbin/pgbouncer") ? "/usr/sbin/pgbouncer" : "pgbouncer";
  }

  TemporaryDirectory directory_;
  int port_ = 0;
  std::optional<Process> process_;
};

}  // namespace interlock::servers
