// What happened in a round of torture: lines of JSON, one an event, in a file for each process.
//
// A worker writes what it asks, what it is told, and what it therefore believes to hold. Each line is one write()
// to a file in append mode, so the log is complete up to the moment of its writer's death. Times are nanoseconds of
// CLOCK_BOOTTIME, which all processes of a host share. The checks read nothing but these lines: they know no store.
//
// Every line has `t` (when) and `k` (the kind). `op` names one call of one worker, `lease` one grant; both are unique in a
// round ("2.0/17": worker 2, first life, 17th). `r` is a resource.
//
//   from workers
//     start     {pid}                                   the process runs and is connected
//     ask       {op, hand, verb, via, parts, form, limit, ttl, renew, priority, identity, hierarchy, lease}
//                                                       about to call. `verb`: acquire, or what is done with a lease: extend,
//                                                       release, partial, downgrade, upgrade, upgrade_for, detach, adopt, tie, break.
//                                                       `via`: call, callback, coroutine, std, command, recipe. `form`, of acquire:
//                                                       wait, once, bounded, tries. `parts`: [{r, m, n, c}], m: exclusive, shared, slots.
//     cancel    {op}                                    the caller has stopped the token that it gave to this call
//     told      {op, answer, errc, text, maybe_held, waited}
//                                                       the call is over. `answer` of acquire: granted, busy, timed_out, exhausted,
//                                                       cancelled, failed; of other verbs: yes, no, released, lost, failed
//     holds     {lease, op, owner, identity, r, m, n, c, fence, asked, adopted, until}
//                                                       from now until `until` it believes to hold r in mode m. `asked`: when it asked.
//                                                       `adopted`: by a token, so the fence is no new one. Several lines for several resources
//     valid     {lease, until}                          looked: held, and valid until then, whatever comes
//     leaves    {lease, r}                              believes it no more (about to release, to downgrade, …)
//     lost      {lease, reason}                         lost() fired: believes nothing of this lease any more
//     breaks    {r, owner}                              about to evict this owner from r: from now on its belief counts for nothing
//     writes    {lease, r, fence, fenced, seen, wrote}  added one to the register of r, see register.hpp. `fenced`: which of the two.
//                                                       `answer`: yes; refused; unknown (the worker never learned it, by its death, too)
//     stall     {from}                                  a short sleep lasted from `from` until `t`: the process did not get to run
//     figures   {when, threads, descriptors, memory, cpu}  `when`: begin, end, idle; memory in bytes, cpu in ns
//     note      {text}                                  for people
//     end       {}                                      the worker ended in order, and was told so
//   from the register
//     register  {r, fenced, value}                      after all writes, it stands at this
//   from the director
//     round     {topology, given, seed, processes, hands, seconds, timeout, promise: {…}}
//     fault     {n, name, voids, disturbs, brings_back} fault n begins; or began after `from`, if the line has that: a failover
//                                                       that nobody ordered. `voids`: the store's promise allows two holders across
//                                                       it. `disturbs`: calls may fail and leases may be lost (so it is if missing).
//                                                       `brings_back`: claims that ended may be there again, until their TTL has ended
//     target    {n, target}                             what fault n has chosen; or skipped {n, why}: it could not begin
//     healed    {n}
//     killed    {worker}  stopped {worker}  continued {worker}
//     hung      {worker}                                it did not end when it was asked to, and was killed
//     crashed   {worker, status}                        it ended in another way than it should
//     stall     {from}                                  another process was late, or the store was to somebody who holds nothing
//     calm      {}                                      all faults are healed, all workers are asked to end
//     probe     {r, within, answer, took}               after the calm: somebody asked for r, and was granted within so long, or not
//     left      {what}                                  after all has ended, the store still shows this. Of a worker: though
//                                                       it has given back all that it had
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interlock/clock.hpp"

namespace torture {

using Json = nlohmann::json;

/// Now, as the lines have it.
inline std::int64_t now() { return interlock::BootClock::now().time_since_epoch().count(); }
inline std::int64_t ticks(interlock::TimePoint at) { return at.time_since_epoch().count(); }

/// Appends lines to a file. Thread-safe: one write() each.
class Log {
 public:
  explicit Log(const std::filesystem::path& path);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  /// Adds `t`, unless it is there, and `k`.
  void add(std::string_view kind, Json fields = Json::object()) const;

 private:
  int fd_;
};

struct Event {
  std::int64_t t = 0;
  std::string k{};
  std::string worker{};  ///< "2.0"; of the director: empty
  Json fields{};
};

/// All events of a round, from all *.log of the directory, in the order of their times. Those of "worker-2.0.log" are of
/// worker "2.0"; a command that a worker runs has "command-….log" and counts as a worker of that name.
std::vector<Event> read_history(const std::filesystem::path& directory);

}  // namespace torture
