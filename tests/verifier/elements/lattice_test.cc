#include "verifier/elements/lattice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace isomer {
namespace {

LatticeTerm RandomTerm(int depth, std::mt19937_64* random) {
  LatticeTerm term;
  term.sign = (*random)() % 3 == 0 ? -1 : 1;
  const uint64_t kind = (*random)() % 8;
  if (depth == 0 || kind < 2) {
    if (kind == 0) {
      term.kind = LatticeTerm::Kind::kInteger;
      term.integer = static_cast<int64_t>((*random)() % 2) * 4;
    } else {
      term.atom = (*random)() % 2 == 0 ? "a" : "b";
    }
    return term;
  }
  term.kind = LatticeTerm::Kind::kMaximum;
  for (int i = 0; i < 2; ++i) term.arguments.push_back(RandomTerm(depth - 1, random));
  return term;
}

int64_t Evaluate(const LatticeTerm& term, int64_t a, int64_t b) {
  int64_t value = term.kind == LatticeTerm::Kind::kInteger ? term.integer
                  : term.atom == "a"                       ? a
                                                           : b;
  if (term.kind == LatticeTerm::Kind::kMaximum) {
    value = std::max(Evaluate(term.arguments[0], a, b), Evaluate(term.arguments[1], a, b));
  }
  return value * term.sign;
}

void ScaleConstants(int64_t factor, LatticeTerm* term) {
  term->integer *= factor;
  for (LatticeTerm& argument : term->arguments) ScaleConstants(factor, &argument);
}

// Its values wherever a and b may be among 0, 4, -4, each other and their negations.
std::vector<int64_t> Table(const LatticeTerm& term) {
  std::vector<int64_t> values;
  for (int64_t a = -7; a <= 7; ++a) {
    for (int64_t b = -7; b <= 7; ++b) values.push_back(Evaluate(term, a, b));
  }
  return values;
}

TEST(Lattice, FormsAreEqualExactlyWhereTermsAre) {
  std::mt19937_64 random(1);
  std::map<std::vector<int64_t>, std::string> form_of;
  std::map<std::string, std::vector<int64_t>> table_of;
  for (int i = 0; i < 3000; ++i) {
    const LatticeTerm term = RandomTerm(3, &random);
    const absl::StatusOr<LatticeForm> form = LatticeFormOf(term);
    ASSERT_TRUE(form.ok());
    const std::string text = form->integer ? std::to_string(*form->integer * form->sign)
                                           : std::to_string(form->sign) + form->text;
    const std::vector<int64_t> table = Table(term);
    EXPECT_EQ(table_of.emplace(text, table).first->second, table) << text;
    EXPECT_EQ(form_of.emplace(table, text).first->second, text);
  }
  EXPECT_GT(table_of.size(), 50u);
}

TEST(Lattice, ATermThatIsAlwaysAnAtomSaysSo) {
  LatticeTerm a, b, minus_a;
  a.atom = minus_a.atom = "a";
  minus_a.sign = -1;
  b.atom = "b";
  // -max(-a, -max(a, b)) is min(a, max(a, b)).
  LatticeTerm inner{LatticeTerm::Kind::kMaximum, -1, "", 0, {a, b}};
  const LatticeTerm absorbed{LatticeTerm::Kind::kMaximum, -1, "", 0, {minus_a, inner}};
  const absl::StatusOr<LatticeForm> form = LatticeFormOf(absorbed);
  ASSERT_TRUE(form.ok());
  EXPECT_TRUE(form->only_atom);
  EXPECT_EQ(form->text, "a");
  EXPECT_EQ(form->sign, 1);
}

TEST(Lattice, TooManyAtomsAreRefused) {
  LatticeTerm term;
  term.kind = LatticeTerm::Kind::kMaximum;
  for (int i = 0; i < 9; ++i) {
    LatticeTerm atom;
    atom.atom = std::string(1, static_cast<char>('a' + i));
    term.arguments.push_back(atom);
  }
  EXPECT_FALSE(LatticeFormOf(term).ok());
}

// Of a: below 4 or beyond, with either sign; then those of b.
std::vector<Order> OrdersOfBoth() {
  std::vector<Order> orders;
  for (const Order& one : OrdersWith({{}, {4}}, "a")) {
    for (Order& both : OrdersWith(one, "b")) orders.push_back(std::move(both));
  }
  return orders;
}

TEST(Lattice, InEachOrderATermIsOneOfItsAtoms) {
  const std::vector<Order> orders = OrdersOfBoth();
  EXPECT_EQ(orders.size(), (2 * 2) * (2 * 3));
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const LatticeTerm term = RandomTerm(3, &random);
    for (const Order& order : orders) {
      // Integers in the same order.
      const auto a = static_cast<int64_t>(order.atoms.at("a") * 1000);
      const auto b = static_cast<int64_t>(order.atoms.at("b") * 1000);
      const std::optional<LatticeForm> form = FormIn(order, term);
      ASSERT_TRUE(form.has_value());
      const int64_t said =
          form->integer ? *form->integer * 1000 : form->sign * (form->text == "a" ? a : b);
      LatticeTerm scaled = term;
      ScaleConstants(1000, &scaled);
      EXPECT_EQ(said, Evaluate(scaled, a, b));
    }
  }
}

TEST(Lattice, AnOrderHasNoPlaceForAnotherConstant) {
  LatticeTerm term, seven;
  seven.kind = LatticeTerm::Kind::kInteger;
  seven.integer = 7;
  term.kind = LatticeTerm::Kind::kMaximum;
  term.arguments = {seven, seven};
  EXPECT_FALSE(FormIn({{}, {4}}, term).has_value());
  EXPECT_EQ(FormIn({{}, {7}}, term)->integer, 7);
}

}  // namespace
}  // namespace isomer
