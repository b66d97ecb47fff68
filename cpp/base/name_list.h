// NameList is a list of names whose indices are looked up at compile time. A misspelt name does not compile:
// constexpr NameList kSymbols{"dim:n", "dim:d"}; values[kSymbols["dim:d"]]
// Thread rule: immutable.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace zinc_rt {

// Called for an unknown name. It is not constexpr, so the constant expression that calls it does not compile, and the
// compiler's error shows this function's name.
inline std::size_t name_is_not_in_the_list() {
  return 0;
}

template <std::size_t N>
struct NameList {
  const char* names[N];

  consteval std::size_t operator[](std::string_view name) const {
    for (std::size_t i = 0; i < N; ++i)
      if (names[i] == name) return i;
    return name_is_not_in_the_list();
  }
  operator std::vector<const char*>() const { return {names, names + N}; }
};
template <class... Names>
NameList(Names...) -> NameList<sizeof...(Names)>;

}  // namespace zinc_rt
