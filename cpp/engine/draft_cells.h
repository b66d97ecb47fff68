// DraftCells says where the KV cells are that a draft model reads, and which tokens they hold. They are the draft model's
// own (OwnDraftCells) or its model's (ModelCells). A cell is numbered from the slot's first cell on.
// Thread rule: as DraftModel. Nothing is allocated after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/feature_rows.h"
#include "executor/executor.h"

namespace zinc_rt {

class DraftCells {
 public:
  virtual ~DraftCells() = default;

  // Begins a call of DraftModel::guess(), in which the slots that call make_room() keep their cells.
  virtual void begin_call() = 0;
  // So many cells of the slot hold a token.
  virtual std::uint32_t n_held(std::uint32_t slot) const = 0;
  // REQUIRES: i < n_held(slot).
  virtual std::int32_t token(std::uint32_t slot, std::uint32_t i) const = 0;
  // Forgets the cells behind the first n.
  virtual void keep(std::uint32_t slot, std::uint32_t n) = 0;
  // For a block that reads features: the features of the text's positions in `known` are there, and cells are wanted up to
  // position `last` - 1. Returns which position of the text the slot's first cell is for; it was `base`. If that changes,
  // the slot's cells are forgotten.
  virtual std::uint32_t place(std::uint32_t slot, std::uint32_t base, FeatureRows::Range known, std::uint32_t last) = 0;
  // Makes room for n cells of the slot. Returns false if there is none.
  virtual bool make_room(std::uint32_t slot, std::uint32_t n) = 0;
  // Adds a cell. Returns the position that its token has in the step. The token may be unknown yet (kLastPick); name() gives
  // it then. REQUIRES: there is room.
  virtual std::uint32_t add(std::uint32_t slot, std::int32_t token) = 0;
  virtual void name(std::uint32_t slot, std::uint32_t position, std::int32_t token) = 0;
  virtual PageTables page_tables() const = 0;
  // Gives the page tables of the model, which must stay valid during the next steps. Own cells do not need them.
  virtual void use_model_pages(const PageTables&) {}
};

// The cells of a draft model with a KV cache of its own. If no page is free, those of the slot are taken that was used
// longest ago, but of no slot that was used in the same call of DraftModel::guess().
class OwnDraftCells final : public DraftCells {
 public:
  OwnDraftCells(std::uint32_t n_slots, std::uint32_t n_pages, std::uint32_t max_context);

  void begin_call() override { ++n_calls_; }
  std::uint32_t n_held(std::uint32_t slot) const override { return slots_[slot].n_held; }
  std::int32_t token(std::uint32_t slot, std::uint32_t i) const override { return tokens_[at(slot, i)]; }
  void keep(std::uint32_t slot, std::uint32_t n) override;
  std::uint32_t place(std::uint32_t slot, std::uint32_t base, FeatureRows::Range known, std::uint32_t last) override;
  bool make_room(std::uint32_t slot, std::uint32_t n) override;
  std::uint32_t add(std::uint32_t slot, std::int32_t token) override;
  void name(std::uint32_t slot, std::uint32_t position, std::int32_t token) override {
    tokens_[at(slot, position)] = token;
  }
  PageTables page_tables() const override { return {tables_, width_, counts_}; }

 private:
  struct Slot {
    std::uint32_t n_held = 0, n_pages = 0;
    std::uint64_t used_in = 0;  // number of the last call of guess() that used the slot
  };
  std::size_t at(std::uint32_t slot, std::uint32_t i) const;
  void give_back_pages(std::uint32_t slot);

  std::vector<Slot> slots_;
  // Page tables of all slots: slot s has n_pages pages, from tables_[s * width_] on. counts_ has their numbers.
  std::uint32_t width_;
  std::vector<std::uint32_t> tables_, counts_, free_pages_;
  std::vector<std::int32_t> tokens_;  // of each cell of the cache; index: page * kPageTokens + cell
  std::uint64_t n_calls_ = 0;
};

// The cells of a draft model that has no KV cache and reads its model's. It needs one row for the last token of a text, and
// keeps nothing.
class ModelCells final : public DraftCells {
 public:
  explicit ModelCells(std::uint32_t n_slots) : bases_(n_slots) {}

  void begin_call() override {}
  std::uint32_t n_held(std::uint32_t) const override { return 0; }
  std::int32_t token(std::uint32_t, std::uint32_t) const override { return kNoToken; }
  void keep(std::uint32_t, std::uint32_t) override {}
  // All rows of a text have the position of its last token that the model has computed.
  std::uint32_t place(std::uint32_t slot, std::uint32_t, FeatureRows::Range, std::uint32_t last) override {
    return bases_[slot] = last - 1;
  }
  bool make_room(std::uint32_t, std::uint32_t) override { return true; }
  std::uint32_t add(std::uint32_t slot, std::int32_t) override { return bases_[slot]; }
  void name(std::uint32_t, std::uint32_t, std::int32_t) override {}
  PageTables page_tables() const override { return tables_; }
  void use_model_pages(const PageTables& tables) override { tables_ = tables; }

 private:
  std::vector<std::uint32_t> bases_;
  PageTables tables_;
};

}  // namespace zinc_rt
