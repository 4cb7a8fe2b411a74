#include "verifier/lemma.h"

#include <gtest/gtest.h>

#include <set>

#include "verifier/elements/normal_form.h"

namespace isomer {
namespace {

// The letters of a pattern, by what they stand for.
struct Letters {
  std::set<char> tensors, axes, sizes, factors;
};

void Collect(const TermPattern& pattern, Letters* letters) {
  if (pattern.letter != 0) letters->tensors.insert(pattern.letter);
  for (const std::string& attribute : pattern.attributes) {
    for (char c : attribute) {
      if (c >= 'A' && c <= 'Z') letters->sizes.insert(c);
      if (c == 'f' || c == 'g') letters->factors.insert(c);
      if (c == 'a' || c == 'b' || c == 'u' || c == 'v') letters->axes.insert(c);
    }
  }
  for (const TermPattern& argument : pattern.arguments) Collect(argument, letters);
}

// All instances of a lemma up to a rank: shapes of each tensor from a few symbols and 1, all axes.
class Instances {
 public:
  explicit Instances(const Lemma& lemma) : lemma_(lemma) {
    Collect(lemma.left, &letters_);
    Collect(lemma.right, &letters_);
  }

  // Returns how many instances are proved; each is also evaluated, as all well-typed others are.
  int Run(int rank) {
    LemmaBinding binding;
    const bool computes = lemma_.text.find('+') != std::string::npos;
    for (char letter : letters_.factors) {
      binding.factors[letter] =
          computes ? NumberExpr{3, {}} : NumberExpr{1, {std::string(1, letter)}};
    }
    for (char letter : letters_.sizes) {
      binding.sizes[letter] = {Extent::Symbol(0), Extent::Symbol(1)};
    }
    ChooseAxes(letters_.axes.begin(), rank, binding);
    return proved_;
  }
  int unproved() const { return unproved_; }

 private:
  void ChooseAxes(std::set<char>::const_iterator next, int rank, LemmaBinding binding) {
    if (next == letters_.axes.end()) return ChooseShapes(letters_.tensors.begin(), rank, binding);
    for (int64_t axis = -rank; axis < 0; ++axis) {
      binding.axes[*next] = axis;
      ChooseAxes(std::next(next), rank, binding);
    }
  }

  void ChooseShapes(std::set<char>::const_iterator next, int rank, LemmaBinding binding) {
    if (next == letters_.tensors.end()) return Judge(binding);
    const Extent kSizes[] = {Extent::Symbol(0), Extent::Symbol(1),
                             Extent::Symbol(0) + Extent::Symbol(1)};
    const int count = letters_.tensors.size() > 3 ? 2 : 3;
    for (int bits = 0; bits < (rank == 1 ? count : count * count); ++bits) {
      Shape shape = {kSizes[bits % count]};
      if (rank > 1) shape.push_back(kSizes[bits / count]);
      binding.tensors[*next] = pool_.Variable(*next * 16 + bits, shape);
      ChooseShapes(std::next(next), rank, binding);
    }
  }

  void Judge(const LemmaBinding& binding) {
    const absl::StatusOr<TermId> left = Instantiate(lemma_.left, binding, &pool_);
    const absl::StatusOr<TermId> right = Instantiate(lemma_.right, binding, &pool_);
    if (!left.ok() || !right.ok()) return;
    const absl::StatusOr<bool> equal = ProvablyEqual(pool_, *left, *right);
    const bool proved = equal.ok() && *equal;
    ++(proved ? proved_ : unproved_);
    for (uint64_t seed : {1, 2, 3}) {
      if (!proved) continue;
      const absl::StatusOr<bool> seen = EqualAtSmallSizes(pool_, *left, *right, seed);
      EXPECT_TRUE(seen.ok() && *seen)
          << lemma_.id << ": " << pool_.ToString(*left) << " = " << pool_.ToString(*right);
    }
  }

  const Lemma& lemma_;
  Letters letters_;
  TermPool pool_;
  int proved_ = 0, unproved_ = 0;
};

TEST(Lemmas, HaveDifferentIds) {
  std::set<std::string> ids;
  for (const Lemma& lemma : LemmaTable()) EXPECT_TRUE(ids.insert(lemma.id).second) << lemma.id;
  EXPECT_GE(ids.size(), 100u);
}

// Every lemma has instances, and what normal forms prove, evaluation confirms.
TEST(Lemmas, EachIsProvedAndConfirmedByEvaluation) {
  // Batch dims and exchanged axes need more than two dims.
  const std::set<std::string> higher = {"transpose_of_batched_matmul", "transpose_of_matmul_left",
                                        "transpose_of_matmul_right",   "matmul_of_concats",
                                        "split_of_batched_matmul_0",   "split_of_batched_matmul_1",
                                        "mul_of_matmul_left",          "mul_of_matmul_right"};
  for (const Lemma& lemma : LemmaTable()) {
    if (higher.contains(lemma.id)) continue;
    Instances instances(lemma);
    const int proved = instances.Run(1) + instances.Run(2);
    EXPECT_GT(proved, 0) << lemma.id << ": " << lemma.text;
  }
}

LemmaStatus StatusOf(const std::string& id, const std::vector<Shape>& shapes,
                     const std::map<char, int64_t>& axes) {
  for (const Lemma& lemma : LemmaTable()) {
    if (lemma.id != id) continue;
    TermPool pool;
    LemmaBinding binding;
    binding.axes = axes;
    binding.sizes = {{'S', {Extent::Symbol(10), Extent::Symbol(11)}}};
    const char letters[] = {'x', 'y', 'z', 'w'};
    for (size_t i = 0; i < shapes.size(); ++i) {
      binding.tensors[letters[i]] = pool.Variable(static_cast<int>(i), shapes[i]);
    }
    LemmaBook book;
    return book.Status(lemma, pool, binding);
  }
  ADD_FAILURE() << "no lemma " << id;
  return LemmaStatus::kNotProved;
}

Shape Symbols(std::vector<int> ids) {
  Shape shape;
  for (int id : ids) shape.push_back(Extent::Symbol(id));
  return shape;
}

TEST(Lemmas, BroadcastInstancesAreProved) {
  const Shape x = Symbols({0, 1}), y = Symbols({1, 2});
  EXPECT_EQ(StatusOf("mul_of_matmul_left", {x, y, {Extent::Symbol(0), 1}}, {}),
            LemmaStatus::kProved);
  EXPECT_EQ(StatusOf("mul_of_matmul_right", {x, y, {Extent::Symbol(2)}}, {}), LemmaStatus::kProved);
  EXPECT_EQ(StatusOf("mul_of_matmul_left", {x, y, {Extent::Symbol(2)}}, {}),
            LemmaStatus::kNotProved);
}

TEST(Lemmas, BatchedInstancesAreProved) {
  EXPECT_EQ(StatusOf("transpose_of_batched_matmul", {Symbols({0, 1, 2, 3}), Symbols({0, 1, 3, 4})},
                     {{'u', -4}, {'v', -3}}),
            LemmaStatus::kProved);
  EXPECT_EQ(StatusOf("transpose_of_matmul_left", {Symbols({0, 1, 2}), Symbols({2, 3})},
                     {{'u', -3}, {'v', -2}}),
            LemmaStatus::kProved);
  EXPECT_EQ(
      StatusOf("matmul_of_concats",
               {Symbols({0, 1, 2}), Symbols({5, 1, 2}), Symbols({0, 2, 3}), Symbols({5, 2, 3})},
               {{'a', -3}}),
      LemmaStatus::kProved);
}

TEST(Lemmas, InstancesThatDoNotHoldAreNotProved) {
  // Rows do not commute with a product; a concat of rows is not one of the other operand's.
  EXPECT_EQ(StatusOf("transpose_of_matmul_left", {Symbols({0, 0}), Symbols({0, 0})},
                     {{'u', -2}, {'v', -1}}),
            LemmaStatus::kNotProved);
  EXPECT_EQ(StatusOf("matmul_of_concat_right", {Symbols({0, 1}), Symbols({1, 2}), Symbols({1, 2})},
                     {{'a', -2}}),
            LemmaStatus::kNotProved);
  // Broadcast: the bias is added to both parts, unless it has the axis.
  EXPECT_EQ(
      StatusOf("add_of_concat_left", {Symbols({0, 1}), Symbols({2, 1}), Symbols({1})}, {{'a', -2}}),
      LemmaStatus::kProved);
  EXPECT_EQ(StatusOf("add_of_concat_left", {Symbols({0, 1}), Symbols({0, 1}), Symbols({0, 1})},
                     {{'a', -2}}),
            LemmaStatus::kNotProved);
}

TEST(Lemmas, TextIsParsedOrRefused) {
  const absl::StatusOr<Lemma> lemma =
      ParseLemma("test", "split{a^uv,S}(transpose{uv}(x)).1 = transpose{uv}(split{a,S}(x).1)");
  ASSERT_TRUE(lemma.ok()) << lemma.status();
  EXPECT_EQ(lemma->left.index, 1);
  EXPECT_EQ(lemma->left.attributes, (std::vector<std::string>{"a^uv", "S"}));
  for (const char* bad :
       {"", "add(x,y)", "add(x,y = x", "plus(x) = x", "add{a(x) = x", "x = y = z"}) {
    EXPECT_FALSE(ParseLemma("test", bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace isomer
