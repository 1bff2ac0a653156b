// Loads models for the daemon: opens a model, makes its engines and asks the first a query whose
// answer is known.
#pragma once

#include <string>

#include "common/result.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/settings.hpp"
#include "daemon/word_lists.hpp"

namespace gloved::daemon {

/// Loads a model with the engine that `settings` ask for and, beside a GPU, the cpu engine for
/// requests that name it. If `old` is not nullptr, this is a reload, which is to replace `old`. If
/// the model's files are the same, unchanged, it reads the lists alone, and the new model shares
/// all else with `old`. Otherwise it first checks that memory has room for both, and compares all
/// content of the files with the checksums in them. A list that cannot be read stays as it was
/// (WordLists::read, also for `pipes`), and its faults are in the vocabulary's lists. `settings`
/// must outlive the model. Errors: those of Model::open, of find_lists, of WordLists::read and of
/// making engines; unavailable, if there is too little memory, or Pin::on is set and the memory
/// cannot be locked; internal, for a wrong answer to the known query. Any thread.
Loaded load_model(const ModelSetting& setting, const Settings& settings, PipeTexts& pipes,
                  const LoadedModel* old);

/// For `gloved --check`: opens a model as load_model does at the start, compares all content of its
/// files with the checksums in them, makes its first engine, locks nothing, and discards it.
/// Returns a line for people about it. Errors as load_model.
Result<std::string> check_model(const ModelSetting& setting, const Settings& settings,
                                PipeTexts& pipes);

}  // namespace gloved::daemon
