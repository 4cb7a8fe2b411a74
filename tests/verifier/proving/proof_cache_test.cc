// What a cache of proofs may be asked, and what must not come out of it.
#include "verifier/proving/proof_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "pcg/support/file.h"
#include "tests/verifier/rule_from_text.h"
#include "tests/verifier/true_rules.h"
#include "verifier/proving/judge_rules.h"

namespace isomer {
namespace {

class ProofCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + "/proofs";
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
  }

  static ProofRecord SomeRecord() {
    return {.verdict = ProofRecord::Verdict::kProved,
            .lemmas = {"relu_idempotent"},
            .solver = "z3",
            .seconds = 0.25,
            .note = "because"};
  }

  std::string path_;
  const Rule rule_ = RuleFromText("relu(relu(x0)) -> relu(x0)", {{1}, {2}});
};

TEST_F(ProofCacheTest, GivesBackWhatWasSaved) {
  {
    ProofCache cache(path_);
    EXPECT_FALSE(cache.Find(rule_).has_value());
    cache.Put(rule_, SomeRecord());
    ASSERT_TRUE(cache.Save().ok());
  }
  const ProofCache cache(path_);
  EXPECT_EQ(cache.note(), "");
  const std::optional<ProofRecord> found = cache.Find(rule_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->verdict, ProofRecord::Verdict::kProved);
  EXPECT_EQ(found->lemmas, SomeRecord().lemmas);
  EXPECT_EQ(found->seconds, 0.25);
  EXPECT_EQ(found->note, "because");
}

TEST_F(ProofCacheTest, KeyIsWhatTheRuleSays) {
  ProofCache cache(path_);
  cache.Put(rule_, SomeRecord());
  Rule renamed = rule_;
  renamed.id = "other";
  renamed.origin = "elsewhere";
  renamed.proof.verdict = ProofRecord::Verdict::kUnknown;
  EXPECT_TRUE(cache.Find(renamed).has_value());
  Rule other = rule_;
  other.ranks.push_back({3});
  EXPECT_FALSE(cache.Find(other).has_value()) << "another rank";
  other = rule_;
  other.reversible = !other.reversible;
  EXPECT_FALSE(cache.Find(other).has_value()) << "both directions";
  other = rule_;
  other.conditions.push_back(NoPartials(0));
  EXPECT_FALSE(cache.Find(other).has_value()) << "another condition";
  other = rule_;
  other.target.nodes[0].kind = OpKind::kTanh;
  EXPECT_FALSE(cache.Find(other).has_value()) << "another operator";
}

TEST_F(ProofCacheTest, AnotherProversVerdictsAreIgnored) {
  ProofCache old(path_, "an older prover");
  old.Put(rule_, SomeRecord());
  ASSERT_TRUE(old.Save().ok());
  ProofCache cache(path_);
  EXPECT_NE(cache.note(), "");
  EXPECT_FALSE(cache.Find(rule_).has_value());
}

TEST_F(ProofCacheTest, DamagedFileIsIgnoredWithANoteAndReplaced) {
  ProofCache whole(path_);
  whole.Put(rule_, SomeRecord());
  ASSERT_TRUE(whole.Save().ok());
  const std::string contents = *ReadFile(path_);
  for (size_t at : {size_t{0}, size_t{30}, contents.size() / 2, contents.size() - 1}) {
    std::string damaged = contents;
    damaged[at] ^= 0x10;
    ASSERT_TRUE(WriteFileAtomically(path_, damaged).ok());
    EXPECT_FALSE(ProofCache(path_).Find(rule_).has_value()) << "byte " << at;
    EXPECT_NE(ProofCache(path_).note(), "") << "byte " << at;
  }
  ASSERT_TRUE(WriteFileAtomically(path_, contents.substr(0, contents.size() / 2)).ok());
  ProofCache cut(path_);
  EXPECT_NE(cut.note(), "");
  cut.Put(rule_, SomeRecord());
  ASSERT_TRUE(cut.Save().ok());
  EXPECT_EQ(ProofCache(path_).note(), "");
}

TEST_F(ProofCacheTest, SecondRunProvesOnlyWhatIsNew) {
  std::vector<Rule> rules = TrueRules();
  rules.resize(8);
  JudgeOptions options;
  ProofCache first(path_), second(path_);
  options.cache = &first;
  const absl::StatusOr<JudgedRules> proved = JudgeRules(rules, options);
  ASSERT_TRUE(proved.ok()) << proved.status();
  ASSERT_TRUE(proved->cache_status.ok()) << proved->cache_status;
  EXPECT_EQ(proved->from_cache, 0);
  rules.push_back(TrueRules()[9]);
  rules.push_back(Mutants()[0].rule);
  ProofCache reread(path_);
  options.cache = &reread;
  const absl::StatusOr<JudgedRules> again = JudgeRules(rules, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->from_cache, 8);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(again->records[i].verdict, ProofRecord::Verdict::kProved) << rules[i].ToString();
  }
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(again->records[i].lemmas, proved->records[i].lemmas) << rules[i].ToString();
  }
  EXPECT_EQ(again->records[9].verdict, ProofRecord::Verdict::kRefuted);
}

TEST_F(ProofCacheTest, UnwritableFolderIsAnErrorOfSaving) {
  ProofCache cache("/proc/none/proofs");
  cache.Put(rule_, SomeRecord());
  EXPECT_FALSE(cache.Save().ok());
}

}  // namespace
}  // namespace isomer
