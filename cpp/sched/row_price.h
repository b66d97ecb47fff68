// The time of a step without prompts by its number of rows, learned from the steps that ran. On a GPU it is a stair: a
// kernel is made for a number of rows, so the second row may cost a third of the first, and the next six nothing. The
// line of cost_model.h cannot show that, and the number of guessed tokens that pays depends on it (choose_drafts.cpp).
// The lengths of the texts are left out: they grow slowly, and the numbers of rows that are used are measured again
// all the time.
// Thread rule: the step thread.
#pragma once

#include <array>
#include <cstdint>

namespace zinc_rt::sched {

class RowPrice {
 public:
  void observe(std::uint32_t rows, double us);
  bool is_known() const { return is_known_; }
  // The prices of a class of rows are one line.
  static bool is_last_of_class(std::uint32_t rows) { return class_of(rows) != class_of(rows + 1); }
  // The expected time of a step of so many rows. Between two observed numbers of rows it is interpolated. After the
  // largest one each row adds a little, so that larger steps are tried.
  double us(std::uint32_t rows) const;

 private:
  static constexpr std::size_t kExact = 16, kClasses = 64;
  static std::size_t class_of(std::uint32_t rows);

  struct Class {
    double n = 0, rows = 0, us = 0;  // observed steps, up to a limit; their mean number of rows; the price
    bool has_begun = false;          // a first step took too long to count
  };
  std::array<Class, kClasses> classes_{};
  bool is_known_ = false;
};

}  // namespace zinc_rt::sched
