// Configurations that follow from the operators' declarations, so that no pair of operators is left
// out because nobody thought of it.
//
// Where: a *world* is the types that a call of an operator takes, and more tensors of its main
// type, so that it composes with itself and others. Each operator gives the worlds of its calls of
// the lowest rank from matrices on (what holds there is tried at other ranks when it is
// generalised): sequential, and where there are parallel operators with each dim split, or with
// partial sums, as the declaration lets them be. Worlds that are part of others are dropped.
//
// With what: operators that share a type form a graph, and an equation is one of a connected set of
// them. Enumeration over a set finds what enumeration over each of its subsets would. So all
// operators that are connected with a world are taken together, with the attributes of their
// domains (attribute_domains.h): at two operators a side, of all operators, that is a second a
// world, where all pairs one by one would be thousands of configurations. With more operators a
// side it is for small sets of operators: of large ones there are too many equations that others
// imply through larger graphs than pruning looks at. Written configurations (configuration.h)
// choose.
#ifndef ISOMER_GENERATOR_ENUMERATION_DERIVED_CONFIGURATIONS_H_
#define ISOMER_GENERATOR_ENUMERATION_DERIVED_CONFIGURATIONS_H_

#include <set>
#include <vector>

#include "generator/enumeration/configuration.h"

namespace isomer {

// Sizes are enumerated one after another, whether or not there is anything of them, each by all
// ways to make it of smaller ones: a thousand take seconds of an operator that ends at two.
inline constexpr int kMostDerivedOperators = 1000;

// Of operators of these kinds, with up to `max_operators` a side.
std::vector<Configuration> DerivedConfigurations(const std::set<OpKind>& kinds, int max_operators);

// Which configurations are enumerated: those that are written down, those that follow from the
// operators' declarations, or both, the latter then with at most two operators a side.
enum class ConfigurationChoice { kWritten, kDerived, kBoth };

std::vector<Configuration> ChosenConfigurations(ConfigurationChoice choice,
                                                const std::set<OpKind>& kinds, int max_operators);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_DERIVED_CONFIGURATIONS_H_
