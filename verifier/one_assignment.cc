#include <map>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/algebra_proof.h"
#include "verifier/structure.h"

namespace isomer {
namespace {

// The function symbol of one output of a call.
absl::StatusOr<Symbol> SymbolOf(const ConcreteCall& call, int output) {
  const int rank = static_cast<int>(call.operands[0].size());
  Symbol symbol{call.op.kind(), output, {}, {}, {}, {}};
  switch (call.op.kind()) {
    case OpKind::kConcat:
    case OpKind::kSplit: {
      const int64_t axis = call.op.Int("axis");
      symbol.axes = {axis < 0 ? axis : axis - rank};
      if (call.op.kind() == OpKind::kSplit) symbol.sizes = call.op.Extents("sizes");
      break;
    }
    case OpKind::kScale:
      symbol.factor = {std::get<double>(*call.op.Find("factor")), {}};
      break;
    case OpKind::kTranspose: {  // Terms know exchanges of two axes.
      const std::vector<int64_t>& perm = call.op.Ints("perm");
      for (int i = 0; i < rank; ++i) {
        if (perm[i] == i) continue;
        if (perm[perm[i]] != i) return absl::UnimplementedError("a transpose of three axes");
        symbol.axes.push_back(i - rank);
      }
      if (symbol.axes.size() != 2) return absl::UnimplementedError("a transpose of many axes");
      break;
    }
    default:
      symbol.rest = call.op.attributes();
  }
  return symbol;
}

absl::StatusOr<std::vector<TermId>> OutputTerms(const ConcreteSide& side, TermPool* pool) {
  std::map<PatternRef, TermId> terms;
  for (int n = 0; n < static_cast<int>(side.calls.size()); ++n) {
    const ConcreteCall& call = side.calls[n];
    std::vector<TermId> arguments;
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      const PatternRef ref = call.inputs[o];
      if (ref.node < 0 && !terms.contains(ref)) {
        terms[ref] = pool->Variable(ref.index, call.operands[o]);
      }
      arguments.push_back(terms.at(ref));
    }
    ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(call.op, call.operands));
    for (int t = 0; t < static_cast<int>(d.outputs.size()); ++t) {
      ISOMER_ASSIGN_OR_RETURN(Symbol symbol, SymbolOf(call, t));
      ISOMER_ASSIGN_OR_RETURN(terms[PatternRef::Node(n, t)], pool->Apply(symbol, arguments));
    }
  }
  std::vector<TermId> outputs;
  for (const PatternRef& ref : side.outputs) {
    const auto found = terms.find(ref);
    if (found == terms.end()) return absl::UnimplementedError("an output that is an input");
    outputs.push_back(found->second);
  }
  return outputs;
}

}  // namespace

absl::Status EqualAtOneAssignment(const ConcreteSide& source, const ConcreteSide& target,
                                  std::set<std::string>* lemmas) {
  const absl::Status structure = EqualByStructure(source, target, lemmas);
  if (structure.ok()) return structure;
  TermPool pool;
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TermId> left, OutputTerms(source, &pool));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TermId> right, OutputTerms(target, &pool));
  std::vector<Goal> goals;
  for (size_t o = 0; o < left.size(); ++o) goals.push_back({left[o], right[o]});
  std::string lemma;
  ISOMER_ASSIGN_OR_RETURN(const bool equal, ProveElements(pool, goals, &lemma));
  if (!equal) return structure;
  lemmas->insert(std::move(lemma));
  return absl::OkStatus();
}

}  // namespace isomer
