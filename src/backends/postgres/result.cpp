#include "backends/postgres/result.hpp"

#include <algorithm>
#include <cctype>

#include "core/text.hpp"

namespace interlock::postgres {

namespace {

constexpr auto kRights =
    "; let the owner of the database or a superuser GRANT it: docs/postgres.md (The rights it "
    "takes) has "
    "the statements";

constexpr std::size_t kLongestLine = 1000;

Error make_error(std::string_view state, const std::string& said, const std::string& node,
                 const std::string& names) {
  const Error::Where where{.resource = {}, .node = node, .maybe_held = false};
  const auto refused = [&](const std::string& why) { return Error(Errc::refused, why, where); };
  if (state == "40P01") {
    return {Errc::deadlock,
            "the server found a deadlock between transactions that touch " +
                (names.empty() ? "these locks" : names) + ", and ended this one: " + said,
            where};
  }
  if (state == "25006")
    return refused("the server is read-only (" + said + "): name the primary, or all hosts");
  if (state == "42501") return refused("the role lacks a right: " + said + kRights);
  if (state == "53100") return refused("the server's disk is full: " + said);
  if (state.starts_with("28")) return refused("the server does not let this role in: " + said);
  if (state == "3D000") return refused(said + "; make it, or correct the name in the URL");
  if (state == "42P05") {
    return refused(
        "a pooler has put another session in the place of ours (" + said +
        "): it keeps no sessions, so leave pooler=session out of the URL and use ?mode=lease, or "
        "connect to the server itself");
  }
  if (state == "IL001") {
    return refused(said +
                   ", and Interlock needs read committed: ALTER ROLE … SET "
                   "default_transaction_isolation = 'read committed'");
  }
  if (state == "IL002") {
    return refused(
        "its holder has outlived its time, and this role may not end the holder's session "
        "(process " +
        said +
        " of the server): use the same role for all, or GRANT pg_signal_backend; or end it by "
        "hand");
  }
  if (state == "IL003") {
    return refused(
        "a pooler has put another session in the place of ours, and advisory locks belong to "
        "a session: connect to the server itself, or use ?mode=lease");
  }
  if (state == "IL004") {
    return Error(
        Errc::unsupported,
        "the lock belongs to the session of another client, and ends with it: only that client "
        "can renew or change it; use ?mode=lease to hand locks on",
        where);
  }
  if (state == "IL006") return refused(said);
  if (state == "42P01" || state == "42883") {
    return Error(
        Errc::unreachable,
        "something is missing from the schema interlock (" + said +
            "): if it stays so, DROP SCHEMA interlock CASCADE while nobody holds a lock, and the "
            "next lock makes it anew",
        where);
  }
  // Whatever passes by itself, or with the next connection.
  static constexpr std::string_view kPassing[] = {"08", "40", "53", "55", "57",
                                                  "58", "3F", "XX", "26", "IL005"};
  if (state.empty() ||
      std::any_of(std::begin(kPassing), std::end(kPassing),
                  [&](std::string_view begin) { return state.starts_with(begin); }))
    return {Errc::unreachable, "the server can't do it now: " + said, where};
  return refused("the server refuses it: " + said + " (" + std::string(state) + ")");
}

bool is_state(std::string_view text) {
  return text.size() == 5 && text.find_first_of("0123456789") != std::string_view::npos &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0 || std::isupper(c) != 0; });
}

}  // namespace

std::string_view sql_state(const PGresult& result) {
  const char* state = PQresultErrorField(&result, PG_DIAG_SQLSTATE);
  return state == nullptr ? std::string_view{} : state;
}

std::string first_line(std::string_view text, const core::Secrets& secrets) {
  const auto shown = secrets.hide(text);
  const auto line = std::string_view(shown).substr(0, shown.find('\n'));
  return line.empty() ? "it does not say why" : printable(line, kLongestLine);
}

Refusal to_refusal(const PGresult& result, const core::Secrets& secrets) {
  const char* message = PQresultErrorField(&result, PG_DIAG_MESSAGE_PRIMARY);
  return {
      .state = std::string(sql_state(result)),
      .said = first_line(message != nullptr ? message : PQresultErrorMessage(&result), secrets)};
}

Error to_error(const Refusal& refusal, const std::string& node, const std::string& names) {
  return make_error(refusal.state, refusal.said, node, names);
}

Error connect_error(PGconn* connection, const std::string& node, const core::Secrets& secrets) {
  return connect_error(std::string_view(PQerrorMessage(connection)), node, secrets);
}

// In its verbose form, an error of the server reads "FATAL:  28P01: password authentication failed".
Error connect_error(std::string_view text, const std::string& node, const core::Secrets& secrets) {
  for (auto at = text.find(": "); at != std::string_view::npos; at = text.find(": ", at + 1)) {
    const auto begin = text.find_first_not_of(' ', at + 2);
    if (begin == std::string_view::npos) break;
    const auto state = text.substr(begin, 5);
    if (is_state(state) && text.substr(begin + 5).starts_with(": "))
      return make_error(state, first_line(text.substr(begin + 7), secrets), node, {});
  }
  const Error::Where where{.resource = {}, .node = node, .maybe_held = false};
  const auto says = [&](const char* words) { return text.find(words) != std::string_view::npos; };
  // What libpq itself finds, and trying again does not mend.
  if (says("no password supplied")) {
    return {Errc::refused,
            "the server wants a password: give password-file=, password-env=, or ~/.pgpass", where};
  }
  if (says("does not support SSL"))
    return {Errc::refused,
            "the server has no TLS, and without it others on the network could read the password "
            "and take the server's place: set up TLS there and use sslmode=verify-full, or say "
            "sslmode=disable if you trust the network",
            where};
  if (says("certificate") || says("root.crt"))
    return {Errc::refused, first_line(text, secrets) + "; see sslrootcert= and sslmode=", where};
  const char* advice = says("session is read-only")
                           ? "; is it a standby, or is default_transaction_read_only set?"
                           : "";
  return {Errc::unreachable, text.empty() ? "no connection" : first_line(text, secrets) + advice,
          where};
}

}  // namespace interlock::postgres
