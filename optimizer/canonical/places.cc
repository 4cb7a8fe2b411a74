#include "optimizer/canonical/places.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pcg/ir/nested_parts.h"

namespace isomer {
namespace {

// Adds an atom to a dim, merged with the previous one if both are one piece of the base. Atoms of
// size 1 are dropped.
void Append(Atom atom, std::vector<Atom>* dim) {
  if (atom.size == 1) return;
  if (!dim->empty() && dim->back().dim == atom.dim &&
      dim->back().stride == atom.stride * atom.size) {
    dim->back() = {atom.dim, atom.stride, dim->back().size * atom.size};
  } else {
    dim->push_back(atom);
  }
}

std::optional<Places> Reshaped(Places places, const std::vector<int64_t>& sizes) {
  std::vector<Atom> atoms;  // reversed: the next one last
  for (const std::vector<Atom>& dim : places.dims)
    atoms.insert(atoms.end(), dim.begin(), dim.end());
  std::reverse(atoms.begin(), atoms.end());
  places.dims.assign(sizes.size(), {});
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t needed = sizes[i];
    while (needed > 1) {
      if (atoms.empty()) return std::nullopt;
      Atom& next = atoms.back();
      if (needed % next.size == 0) {
        needed /= next.size;
        Append(next, &places.dims[i]);
        atoms.pop_back();
      } else if (next.size % needed == 0) {
        next.size /= needed;
        Append({next.dim, next.stride * next.size, needed}, &places.dims[i]);
        needed = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  if (!atoms.empty()) return std::nullopt;
  return places;
}

// Restricts a dim to elements [first, first + size), if these are one of its pieces of that size;
// returns whether it did.
bool Select(int64_t first, int64_t size, int dim, Places* places) {
  std::vector<Atom>& atoms = places->dims[dim];
  if (first % size != 0) return false;
  for (size_t a = 0; a < atoms.size(); ++a) {
    int64_t inner = 1;
    for (size_t b = a + 1; b < atoms.size(); ++b) inner *= atoms[b].size;
    const int64_t at = first / inner;
    const bool is_whole = first % inner == 0 && size % inner == 0;
    if (!is_whole && (first + size - 1) / inner != at) return false;
    if (is_whole && atoms[a].size % (size / inner) != 0) return false;
    places->first[atoms[a].dim] += at * atoms[a].stride;
    atoms[a].size = is_whole ? size / inner : 1;
    if (is_whole) break;
    first -= at * inner;
  }
  std::erase_if(atoms, [](const Atom& atom) { return atom.size == 1; });
  return true;
}

// Atoms in the order of the base, each with its dim and position in `places`.
std::vector<Atom> InOrderOfBase(const std::vector<std::vector<Atom>>& dims) {
  std::vector<Atom> atoms;
  for (const std::vector<Atom>& dim : dims) atoms.insert(atoms.end(), dim.begin(), dim.end());
  std::sort(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) {
    return std::pair(a.dim, -a.stride) < std::pair(b.dim, -b.stride);
  });
  return atoms;
}

// Splits dims of the base at gaps between atoms that no split of an unsplit dim skips: `places`
// over these dims.
Places WithGapsApart(const Places& places) {
  Places cut;
  std::map<std::pair<int, int64_t>, int> piece_of;  // by dim of the base and stride in it
  const std::vector<Atom> atoms = InOrderOfBase(places.dims);
  for (int d = 0; d < static_cast<int>(places.base.size()); ++d) {
    std::vector<int64_t> strides;  // ends of pieces: of atoms, and of gaps
    int64_t above = places.base[d];
    bool has_gap = false;
    for (const Atom& atom : atoms) {
      if (atom.dim != d) continue;
      const int64_t top = atom.stride * atom.size;
      has_gap |= top != above && !strides.empty();
      if (top != above) strides.push_back(top);
      strides.push_back(above = atom.stride);
    }
    has_gap |= above != 1 && !strides.empty();
    if (!has_gap) strides.clear();
    if (strides.empty() || strides.back() != 1) strides.push_back(1);
    above = places.base[d];
    for (int64_t stride : strides) {
      piece_of[{d, stride}] = static_cast<int>(cut.base.size());
      cut.base.push_back(above / stride);
      cut.first.push_back(places.first[d] % above / stride);
      above = stride;
    }
  }
  for (const std::vector<Atom>& dim : places.dims) {
    cut.dims.emplace_back();
    for (const Atom& atom : dim) {
      const auto piece = piece_of.find({atom.dim, atom.stride});
      cut.dims.back().push_back(piece != piece_of.end()
                                    ? Atom{piece->second, 1, atom.size}
                                    : Atom{piece_of.at({atom.dim, 1}), atom.stride, atom.size});
    }
  }
  return cut;
}

}  // namespace

Places Places::Of(const std::vector<int64_t>& sizes) {
  Places places{sizes, std::vector<int64_t>(sizes.size(), 0), {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    places.dims.emplace_back();
    Append({static_cast<int>(i), 1, sizes[i]}, &places.dims.back());
  }
  return places;
}

std::vector<int64_t> Places::Sizes() const {
  std::vector<int64_t> sizes;
  for (const std::vector<Atom>& dim : dims) {
    sizes.push_back(1);
    for (const Atom& atom : dim) sizes.back() *= atom.size;
  }
  return sizes;
}

std::optional<Places> PlacesAfter(const Operator& op, int output, const Places& places) {
  Places after = places;
  switch (op.kind()) {
    case OpKind::kTranspose:
      for (size_t i = 0; i < after.dims.size(); ++i) {
        after.dims[i] = places.dims[op.Ints("perm")[i]];
      }
      return after;
    case OpKind::kReshape:
      return Reshaped(std::move(after), op.Ints("shape"));
    case OpKind::kSplit: {
      int64_t first = 0;
      const std::vector<Extent>& sizes = op.Extents("sizes");
      for (int i = 0; i < output; ++i) first += sizes[i].value();
      int axis = static_cast<int>(op.Int("axis"));
      if (axis < 0) axis += static_cast<int>(places.dims.size());
      if (!Select(first, sizes[output].value(), axis, &after)) return std::nullopt;
      return after;
    }
    default:
      return std::nullopt;
  }
}

std::vector<LayoutCall> CallsOf(const Places& places) {
  std::vector<LayoutCall> calls;
  const Places cut = WithGapsApart(places);
  std::vector<int64_t> now = places.base;
  const auto reshape = [&](const std::vector<int64_t>& sizes) {
    if (sizes == now) return;
    calls.push_back({{OpKind::kReshape, {{"shape", sizes}}}, 0});
    now = sizes;
  };
  reshape(cut.base);
  const std::vector<Atom> atoms = InOrderOfBase(cut.dims);
  for (int d = 0; d < static_cast<int>(cut.base.size()); ++d) {
    int64_t taken = 1;
    for (const Atom& atom : atoms) {
      if (atom.dim == d) taken *= atom.size;
    }
    if (taken == cut.base[d]) continue;
    const std::vector<int64_t> parts(cut.base[d] / taken, taken);
    for (const SplitOnTheWay& split : WayToPart(parts, cut.first[d] / taken)) {
      const std::vector<Extent> sizes(split.sizes.begin(), split.sizes.end());
      calls.push_back(
          {{OpKind::kSplit, {{"axis", static_cast<int64_t>(d)}, {"sizes", sizes}}}, split.output});
    }
    now[d] = taken;
  }
  std::vector<Atom> order;
  for (const std::vector<Atom>& dim : cut.dims) order.insert(order.end(), dim.begin(), dim.end());
  if (order != atoms) {
    std::vector<int64_t> sizes, perm;
    for (const Atom& atom : atoms) sizes.push_back(atom.size);
    for (const Atom& atom : order) {
      perm.push_back(std::find(atoms.begin(), atoms.end(), atom) - atoms.begin());
    }
    reshape(sizes);
    calls.push_back({{OpKind::kTranspose, {{"perm", perm}}}, 0});
    now.clear();
    for (const Atom& atom : order) now.push_back(atom.size);
  }
  reshape(places.Sizes());
  return calls;
}

RowsApart WithRowsInOrder(const Places& places) {
  std::vector<std::vector<Atom>> last = {places.dims.back()};
  const std::vector<Atom> in_order = InOrderOfBase({places.dims.begin(), places.dims.end() - 1});
  Places rows{places.base, places.first, {}};
  std::vector<std::pair<int, int64_t>> at;  // per atom of `in_order`: dim of `rows`, stride there
  for (const Atom& atom : in_order) {
    const bool is_next = !rows.dims.empty() && rows.dims.back().back().dim == atom.dim &&
                         rows.dims.back().back().stride == atom.stride * atom.size;
    if (is_next) {
      for (auto& [dim, stride] : at) {
        if (dim + 1 == static_cast<int>(rows.dims.size())) stride *= atom.size;
      }
    } else {
      rows.dims.emplace_back();
    }
    Append(atom, &rows.dims.back());
    at.push_back({static_cast<int>(rows.dims.size()) - 1, 1});
  }
  rows.dims.push_back(places.dims.back());
  RowsApart apart{rows, Places::Of(rows.Sizes())};
  const std::vector<Atom> last_of_rest = apart.rest.dims.back();
  apart.rest.dims.clear();
  for (size_t i = 0; i + 1 < places.dims.size(); ++i) {
    apart.rest.dims.emplace_back();
    for (const Atom& atom : places.dims[i]) {
      const auto& [dim, stride] =
          at[std::find(in_order.begin(), in_order.end(), atom) - in_order.begin()];
      Append({dim, stride, atom.size}, &apart.rest.dims.back());
    }
  }
  apart.rest.dims.push_back(last_of_rest);
  return apart;
}

}  // namespace isomer
