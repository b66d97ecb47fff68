// RowPrice predicts how long a step without prompts takes, by the number of its rows (tokens). It learns from each such
// step that ran. On a GPU the time grows in stairs: a kernel is compiled for a certain number of rows, so the second
// row may cost a third of the first, and the next six rows nothing. The straight line of cost_model.h cannot show that.
// choose_drafts.cpp uses RowPrice to find the number of guessed tokens that is worth its time. The lengths of the texts
// are ignored, because they grow slowly and the numbers of rows in use are measured again in every step.
// Thread rule: the step thread.
#pragma once

#include <array>
#include <cstdint>

namespace zinc_rt::sched {

class RowPrice {
 public:
  void observe(std::uint32_t rows, double us);
  bool is_known() const { return is_known_; }
  // Returns whether a row more would fall into another class. Within a class the price is a straight line.
  static bool is_last_of_class(std::uint32_t rows) { return class_of(rows) != class_of(rows + 1); }
  // Returns the expected time in us of a step with this number of rows. Between two observed numbers it interpolates.
  // Beyond the largest observed number each row adds a little, so that larger steps are tried.
  double us(std::uint32_t rows) const;
  // Returns the largest number of rows whose price was observed; 0 if none was.
  std::uint32_t most_seen() const;

 private:
  static constexpr std::size_t kExact = 16, kClasses = 64;
  static std::size_t class_of(std::uint32_t rows);

  struct Class {
    // Number of observed steps, up to kCounted; mean number of their rows; mean duration in us.
    double n = 0, rows = 0, us = 0;
    bool has_begun = false;  // true after a first step that was ignored because it took too long
  };
  // Index: class_of(rows).
  std::array<Class, kClasses> classes_{};
  bool is_known_ = false;
};

}  // namespace zinc_rt::sched
