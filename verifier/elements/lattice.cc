#include "verifier/elements/lattice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

constexpr size_t kMostAtoms = 4, kMostConstants = 4;

using Values = std::map<std::string, double>;

double Evaluate(const LatticeTerm& term, const Values& values) {
  double value = 0;
  switch (term.kind) {
    case LatticeTerm::Kind::kAtom: {
      const auto found = values.find(term.atom);
      value = found == values.end() ? 0 : found->second;  // One that does not matter.
      break;
    }
    case LatticeTerm::Kind::kInteger:
      value = static_cast<double>(term.integer);
      break;
    case LatticeTerm::Kind::kMaximum:
      value = Evaluate(term.arguments[0], values);
      for (const LatticeTerm& argument : term.arguments) {
        value = std::max(value, Evaluate(argument, values));
      }
  }
  return value * term.sign;
}

// Calls `visit` with values in every order among themselves, their negations and the constants.
void ForEachOrder(const std::vector<std::string>& atoms, const std::set<int64_t>& constants,
                  const std::function<void(const Values&)>& visit) {
  // Places for all atoms between any two neighbouring constants, and beyond the last.
  std::vector<double> places;
  double lower = 0;
  auto add_places = [&](double upper) {
    for (size_t i = 1; i <= atoms.size(); ++i) {
      places.push_back(lower + (upper - lower) * static_cast<double>(i) /
                                   static_cast<double>(atoms.size() + 1));
    }
    lower = upper;
  };
  for (int64_t constant : constants) add_places(static_cast<double>(constant));
  add_places(lower + 1);
  std::vector<bool> taken(places.size(), false);
  Values values;
  std::function<void(size_t)> assign = [&](size_t next) {
    if (next == atoms.size()) return visit(values);
    for (size_t p = 0; p < places.size(); ++p) {
      if (taken[p]) continue;
      taken[p] = true;
      for (double sign : {1, -1}) {
        values[atoms[next]] = sign * places[p];
        assign(next + 1);
      }
      taken[p] = false;
    }
  };
  assign(0);
}

// What `value` is: "2" the atom 2 of `atoms`, "-2" its negation, "=3" the number 3.
std::string NameOf(double value, const std::vector<std::string>& atoms, const Values& values) {
  for (size_t i = 0; i < atoms.size(); ++i) {
    const double of_atom = values.at(atoms[i]);
    if (value == of_atom) return absl::StrCat("+", i);
    if (value == -of_atom) return absl::StrCat("-", i);
  }
  return absl::StrCat("=", static_cast<int64_t>(value));
}

// Leaves the atoms and constants that the term is somewhere; it does not depend on the others,
// being continuous in them.
void KeepWhatMatters(const LatticeTerm& term, std::vector<std::string>* atoms,
                     std::set<int64_t>* constants) {
  std::set<std::string> matter;
  std::set<int64_t> constants_that_matter;
  ForEachOrder(*atoms, *constants, [&](const Values& values) {
    const double value = std::abs(Evaluate(term, values));
    bool is_atom = false;
    for (const std::string& atom : *atoms) {
      if (std::abs(values.at(atom)) != value) continue;
      matter.insert(atom);
      is_atom = true;
    }
    if (!is_atom && value != 0) constants_that_matter.insert(static_cast<int64_t>(value));
  });
  atoms->assign(matter.begin(), matter.end());
  *constants = std::move(constants_that_matter);
}

}  // namespace

void CollectAtoms(const LatticeTerm& term, std::set<std::string>* atoms,
                  std::set<int64_t>* constants) {
  if (term.kind == LatticeTerm::Kind::kAtom) atoms->insert(term.atom);
  if (term.kind == LatticeTerm::Kind::kInteger && term.integer != 0) {
    constants->insert(std::abs(term.integer));
  }
  for (const LatticeTerm& argument : term.arguments) CollectAtoms(argument, atoms, constants);
}

absl::StatusOr<LatticeForm> LatticeFormOf(const LatticeTerm& term) {
  std::set<std::string> named;
  std::set<int64_t> constants;
  CollectAtoms(term, &named, &constants);
  if (named.size() > kMostAtoms || constants.size() > kMostConstants ||
      (named.size() > 2 && !constants.empty())) {
    return absl::ResourceExhaustedError("a maximum of too many");
  }
  std::vector<std::string> atoms(named.begin(), named.end());
  KeepWhatMatters(term, &atoms, &constants);
  std::set<std::string> plain_results, negated_results;
  std::vector<std::string> plain, negated;
  ForEachOrder(atoms, constants, [&](const Values& values) {
    const double value = Evaluate(term, values);
    plain.push_back(NameOf(value, atoms, values));
    negated.push_back(NameOf(-value, atoms, values));
    plain_results.insert(plain.back());
  });
  LatticeForm form;
  if (plain_results.size() == 1) {
    const std::string& only = *plain_results.begin();
    form.only_atom = true;
    if (only[0] == '=') {
      form.integer = static_cast<int64_t>(Evaluate(term, {}));
    } else {
      form.text = atoms[0];
      form.sign = only[0] == '+' ? 1 : -1;
    }
    return form;
  }
  form.sign = negated < plain ? -1 : 1;
  // Which constants there are decides how many orders are listed, so they are part of the text.
  form.text = absl::StrCat("order<", absl::StrJoin(constants, ","), ">(", absl::StrJoin(atoms, ";"),
                           ":", absl::StrJoin(form.sign > 0 ? plain : negated, ""), ")");
  return form;
}

std::vector<Order> OrdersWith(const Order& order, const std::string& atom) {
  std::set<double> sizes = {0};
  for (const auto& [other, value] : order.atoms) sizes.insert(std::abs(value));
  for (int64_t constant : order.constants) sizes.insert(static_cast<double>(constant));
  std::vector<Order> orders;
  for (auto size = sizes.begin(); size != sizes.end(); ++size) {
    const auto next = std::next(size);
    const double place = next == sizes.end() ? *size + 1 : (*size + *next) / 2;
    for (const double value : {place, -place}) {
      orders.push_back(order);
      orders.back().atoms[atom] = value;
    }
  }
  return orders;
}

std::optional<LatticeForm> FormIn(const Order& order, const LatticeTerm& term) {
  std::set<std::string> atoms;
  std::set<int64_t> constants;
  CollectAtoms(term, &atoms, &constants);
  if (!std::includes(order.constants.begin(), order.constants.end(), constants.begin(),
                     constants.end())) {
    return std::nullopt;
  }
  const double value = Evaluate(term, order.atoms);
  LatticeForm form;
  form.only_atom = true;
  for (const std::string& atom : atoms) {
    const double of_atom = order.atoms.at(atom);
    if (std::abs(of_atom) != std::abs(value)) continue;
    form.text = atom;
    form.sign = of_atom == value ? 1 : -1;
    return form;
  }
  form.integer = static_cast<int64_t>(value);
  return form;
}

}  // namespace isomer
