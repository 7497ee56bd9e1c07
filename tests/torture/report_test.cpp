// What a round's history becomes: a result, a table, JSON, and a picture of each violation.
#include "report.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "made.hpp"
#include "timeline.hpp"

namespace torture {
namespace {

namespace fs = std::filesystem;
using made::exclusive;
using made::History;

std::string content(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Report : public testing::Test {
 protected:
  Report() {
    std::string name = (fs::temp_directory_path() / "interlock-report-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~Report() override { fs::remove_all(directory_); }

  /// As the processes of a round write it.
  void write(const History& history) const {
    for (const auto& event : history.events()) {
      const auto file = event.worker.empty() ? "director" : "worker-" + event.worker;
      auto fields = event.fields;
      fields["t"] = event.t;
      Log(directory_ / (file + ".log")).add(event.k, fields);
    }
  }

  static History round_with_a_conflict() {
    History history;
    history.add(0, "", "round", {{"topology", "redlock"}, {"seed", 7}});
    history.held(10, 50, "1.0/1", exclusive("a<b")).held(49, 90, "2.0/1", exclusive("a<b"));
    history.fault(20, 30, false).add(60, "", "killed", {{"worker", "3.0"}});
    return history.add(2000, "", "calm");
  }

  fs::path directory_{};
};

TEST_F(Report, AHistoryIsReadFromAllItsFiles) {
  History history;
  history.add(20, "1.0", "start").add(10, "", "round").add(30, "2.1", "start");
  write(history);
  std::ofstream(directory_ / "worker-2.1.log", std::ios::app) << R"({"t":40,"k":"as)";
  std::ofstream(directory_ / "commands.txt") << "no history";
  Log(directory_ / "command-1.0_7.log").add("holds", {{"t", 50 * made::kMs}});
  const auto events = read_history(directory_);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].worker, "");
  EXPECT_EQ(events[1].worker, "1.0");
  EXPECT_EQ(events[2].worker, "2.1");
  EXPECT_EQ(events[3].worker, "command-1.0_7");
}

TEST_F(Report, ALineThatIsNoneIsAnErrorThatNamesItsFile) {
  std::ofstream(directory_ / "director.log") << "{\"t\":1,\"k\":\"calm\"}\nnonsense\n";
  try {
    (void)read_history(directory_);
    FAIL() << "it was read";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("director.log:2"), std::string::npos) << error.what();
  }
}

TEST_F(Report, ARoundHasItsCountsAndItsViolations) {
  write(round_with_a_conflict());
  const auto round = judge(directory_);
  EXPECT_EQ(round.topology, "redlock");
  EXPECT_EQ(round.seed, 7U);
  EXPECT_EQ(round.seconds, 2.0);
  EXPECT_EQ(round.calls, 4U);
  EXPECT_EQ(round.grants, 2U);
  EXPECT_EQ(round.faults, (std::map<std::string, std::uint64_t>{{"restart", 1}}));
  EXPECT_EQ(round.violations(), 1U);
  const auto text = content(directory_ / "exclusion-1.txt");
  EXPECT_NE(text.find("make torture STORE=redlock SEED=7"), std::string::npos) << text;
  EXPECT_EQ(times(text, "  holds  "), 2U);
}

TEST_F(Report, ThePictureShowsBothHoldersAndTheFault) {
  write(round_with_a_conflict());
  judge(directory_);
  const auto picture = content(directory_ / "exclusion-1.svg");
  EXPECT_EQ(picture.substr(0, 5), "<svg ");
  EXPECT_EQ(times(picture, "class=\"framed\""), 2U);
  EXPECT_EQ(times(picture, ">a&lt;b<"), 1U);
  EXPECT_NE(picture.find(">restart<"), std::string::npos);
}

TEST_F(Report, PorcupineFindsTheConflictToo) {
  const fs::path program = INTERLOCK_PORCUPINE;
  if (!fs::exists(program) || fs::file_size(program) == 0) GTEST_SKIP() << "it was not built";
  write(round_with_a_conflict());
  const auto round = judge(directory_, program);
  EXPECT_EQ(round.violations(), 2U);
  const auto& finding = round.findings.back();
  EXPECT_EQ(finding.name, "porcupine");
  EXPECT_EQ(finding.looked_at, 4U);
  ASSERT_EQ(finding.violations.size(), 1U);
  EXPECT_NE(finding.violations.front().text.find("of a<b is one"), std::string::npos);
  EXPECT_TRUE(fs::exists(directory_ / "porcupine.html"));
  EXPECT_TRUE(fs::exists(directory_ / "porcupine-1.svg"));
}

TEST_F(Report, WithoutPorcupineNobodyMissesIt) {
  write(round_with_a_conflict());
  EXPECT_EQ(judge(directory_, directory_ / "not-there").findings.back().name, "figures");
}

TEST_F(Report, TheTableAddsUp) {
  write(round_with_a_conflict());
  auto round = judge(directory_);
  round.repeats = 10;
  round.came_again["exclusion"] = 4;
  auto other = round;
  other.topology = "file";
  other.findings.clear();
  std::ostringstream out;
  print(out, {round, other, other});
  const auto text = out.str();
  const auto has_row = [&](const std::vector<std::string>& cells) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<std::string> found;
      for (std::string word; words >> word;) found.push_back(word);
      if (found == cells) return true;
    }
    return false;
  };
  EXPECT_TRUE(has_row({"redlock", "1", "2", "4", "2", "1", "1", "0", "0", "0"})) << text;
  EXPECT_TRUE(has_row({"file", "2", "4", "8", "4", "2", "0", "0", "0", "0"})) << text;
  EXPECT_TRUE(has_row({"all", "3", "6", "12", "6", "3", "1", "0", "0", "0"})) << text;
  EXPECT_TRUE(has_row({"exclusion", "2", "0", "1"})) << text;
  EXPECT_TRUE(has_row({"restart", "3"})) << text;
  EXPECT_NE(text.find("It came again in 4 of 10 repeats."), std::string::npos) << text;
  EXPECT_NE(text.find("exclusion-1.svg"), std::string::npos) << text;
}

TEST_F(Report, JsonHasWhatTheTableHas) {
  write(round_with_a_conflict());
  const auto json = to_json({judge(directory_)});
  EXPECT_EQ(json.at("violations"), 1);
  const auto& round = json.at("rounds").at(0);
  EXPECT_EQ(round.at("topology"), "redlock");
  EXPECT_EQ(round.at("command"), "make torture STORE=redlock SEED=7");
  const auto& exclusion = round.at("checks").at(0);
  EXPECT_EQ(exclusion.at("check"), "exclusion");
  EXPECT_EQ(exclusion.at("looked_at"), 2);
  EXPECT_EQ(exclusion.at("violations"), 1);
  EXPECT_EQ(exclusion.at("shown").at(0).at("events").size(), 8U);
}

}  // namespace
}  // namespace torture
