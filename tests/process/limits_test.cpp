// What the command reads on its own machine may be as large as somebody made it: files, stdin, arguments, variables.
// Expected: an error in time, and hardly any memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "backends/file/shard.hpp"
#include "conformance/temporary_directory.hpp"
#include "interlock/interlock.hpp"
#include "servers/endless_server.hpp"

namespace interlock {
namespace {

namespace fs = std::filesystem;

/// What `interlock $1…` takes, run by a shell in a directory of its own, below which `locks` is a store.
class Limits : public testing::Test {
 protected:
  void expect_error(const std::string& script, const std::string& part) {
    const auto usage = servers::measure(
        {"/bin/sh", "-c",
         "cd \"$1\" && mkdir -p -m 700 locks && export INTERLOCK_URL=\"file://$1/locks\" && shift && " + script,
         INTERLOCK_BIN, directory_.path().string()});
    EXPECT_GT(usage.status, 0) << script << ": " << usage.output.substr(0, 1000);
    EXPECT_NE(usage.output.find(part), std::string::npos)
        << script << ": " << usage.output.substr(0, 1000);
    EXPECT_LT(usage.took, std::chrono::seconds(10)) << script;
    EXPECT_LT(usage.peak_mebibytes, servers::kLittleMemory) << script;
    EXPECT_LT(usage.output.size(), 20'000U) << script;
  }
  fs::path write(const std::string& name, const std::string& text) {
    auto path = directory_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string repeated(const std::string& text, std::size_t bytes) {
    std::string all;
    all.reserve(bytes + text.size());
    while (all.size() < bytes) all += text;
    return all;
  }

  TemporaryDirectory directory_;
};

TEST_F(Limits, ATokenOnStdinHasAnEnd) {
  expect_error("exec \"$0\" release - </dev/zero", "more than 2097152 bytes");
  expect_error("exec \"$0\" extend - </dev/zero", "more than 2097152 bytes");
  write("names", "il1.0123456789abcdef0123456789abcdef.1000" + repeated(".a", 2'000'000));
  expect_error("exec \"$0\" release - <names", "not a token");
}

TEST_F(Limits, TheSettingsFileIsSmallAndNotNested) {
  for (const auto* content : {"[", "{\"a\":", "[[],", "\"", "[1,", "[\"\",", "{\"a\":{},\"b\":["}) {
    write("settings.json", R"({"url": )" + repeated(content, 1'000'000));
    expect_error("exec \"$0\" --config settings.json list", "settings.json:1");
  }
  std::string keys = "{";
  for (int i = 0; keys.size() < 1'000'000; ++i) keys += "\"" + std::to_string(i) + "\":1,";
  write("settings.json", keys + "\"x\":1}");
  expect_error("exec \"$0\" --config settings.json list", "there is no setting");
  write("settings.json", repeated(" ", 3'000'000));
  expect_error("exec \"$0\" --config settings.json list", "1 MiB");
}

TEST_F(Limits, FilesThatOptionsNameAreSmallAndRegular) {
  write("large", repeated("x", 2'000'000));
  ASSERT_EQ(::mkfifo((directory_.path() / "fifo").c_str(), 0600), 0);
  const auto in = directory_.path().string() + "/";
  for (const std::string url :
       {"redis://h?password-file=", "etcd://me@h?password-file=", "postgres://h/d?password-file=",
        "redis+sentinel://h/m?sentinel-password-file=", "rediss://h?ca=", "rediss://h?cert=",
        "rediss://h?key=", "etcds://h?ca=", "etcds://h?cert=", "etcds://h?key=",
        "postgres://h/d?sslrootcert=", "postgres://h/d?sslcert=", "postgres://h/d?sslkey=",
        "postgres://h/d?passfile="}) {
    auto option = url.substr(url.find('?') + 1, url.find('=') - url.find('?') - 1);
    if (option.starts_with("sentinel-")) option = "password-file";
    for (const auto& path : {std::string("/dev/zero"), in + "fifo", std::string("/")})
      expect_error("exec \"$0\" list --url '" + url + path + "'",
                   option + ": " + path + " is not a regular file");
    expect_error("exec \"$0\" list --url '" + url + in + "large'",
                 option + ": " + in + "large has more than ");
  }
}

TEST_F(Limits, AShardThatIsDamagedIsAnErrorThatNamesIt) {
  const auto name = "locks/" + file::data_name(file::shard_of("a"));
  const auto shown = (directory_.path() / name).string();
  const std::string record =
      R"({"res":"a","owner":"0123456789abcdef0123456789abcdef","mode":"shared",)"
      R"("since":1,"exp":1,"fence":1,"pid":0,"home":"1","who":""},)"
      "\n";
  const auto boot = [] {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
  }();
  write("locks/boot", boot);  // or the first client after a boot would set such a file aside
  const auto head = R"({"interlock":1,"boot":")" + boot + R"(","fence":1,"ticket":1,"records":[)";
  constexpr std::size_t most = 8'300'000;
  const auto of_owners = [&] {
    std::string all = head;
    for (std::uint64_t i = 1; all.size() < 8'000'000; ++i) {
      auto one = record;
      all += one.replace(one.find("0123456789abcdef"), 32, Owner{1, i}.to_string());
    }
    return all;
  };
  // Made one after the other: what this process has counts for the commands that it starts.
  const std::vector<std::function<std::string()>> contents{
      [] { return repeated("[", most); },
      [] { return repeated("{\"a\":", most); },
      [&] { return head + repeated(record, most); },
      of_owners,
      [&] { return head + repeated("{", most); },
      [&] { return head + "{\"res\":\"" + repeated("x", most); },
      [&] { return head + "{\"" + repeated("x", most); },
      [&] { return head + "{" + repeated("\"x\":1,", most); },
      [&] { return head + repeated(" ", most); },
      [&] { return head + repeated("\n", most); },
      [] { return repeated("[\n", most); },
      [&] { return head + "{" + repeated("\"x\":1,\n", most); },
      [] { return "\"" + repeated("\\u0001", most); }};
  for (std::size_t i = 0; i < contents.size(); ++i) {
    SCOPED_TRACE(i);
    fs::create_directories(directory_.path() / "locks");
    fs::permissions(directory_.path() / "locks", fs::perms::owner_all);
    write("locks/" + file::lock_name(file::shard_of("a")), "");
    write(name, contents[i]());
    expect_error("exec \"$0\" list", shown);
    expect_error("exec \"$0\" run -n a -- true", shown);
  }
  write(name, "");
  fs::resize_file(directory_.path() / name, std::uintmax_t{1} << 34U);  // has no blocks
  expect_error("exec \"$0\" list", "more than 8 MiB");
  expect_error("exec \"$0\" run -n a -- true", "interlock repair");
}

TEST_F(Limits, ArgumentsAndVariablesAreAsLargeAsTheSystemAllows) {
  const std::string large = "$(head -c 100000 /dev/zero | tr '\\0' x)";
  const std::string many = "$(seq 100000 115000 | tr '\\n' ' ')";
  expect_error("exec \"$0\" " + large, "there is no command");
  expect_error("exec \"$0\" list --" + large, "");
  expect_error("exec \"$0\" run -n " + large + " -- true", "512");
  expect_error("exec \"$0\" run -n a --label " + large + " -- true", "1024");
  expect_error("exec \"$0\" run -n a --ttl " + large + " -- true", "");
  expect_error("exec \"$0\" run -n " + many + " -- true", "");
  expect_error("exec \"$0\" release " + large, "not a token");
  expect_error("exec \"$0\" who " + large, "512");
  expect_error("exec \"$0\" list --url " + large, "");
  expect_error("exec \"$0\" list --config " + large, "");
  expect_error("exec \"$0\" serve --metrics " + large, "");
  expect_error("exec \"$0\" simulate scale --profile " + large, "");
  expect_error("exec \"$0\" simulate " + large, "");
  for (const auto* variable : {"INTERLOCK_URL", "INTERLOCK_CONFIG", "INTERLOCK_ACTOR"})
    expect_error("exec env " + std::string(variable) + "=" + large + " \"$0\" run -n a -- true",
                 "");
  for (const auto* variable : {"REDIS_HOST", "REDIS_PORT", "REDIS_DB", "LOCKING_BACKEND"})
    expect_error("unset INTERLOCK_URL; exec env LOCKING_BACKEND=redis " + std::string(variable) +
                     "=" + large + " \"$0\" run -n -w 1s a -- true",
                 "");
}

}  // namespace
}  // namespace interlock
