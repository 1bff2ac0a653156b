// Results as text for people or as CSV for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace gloved::bench {

enum class TableFormat { text, csv };

/// Rows of cells under headings. In text the first column is left-aligned, the others right-aligned.
class Table {
  public:
    explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
    /// As many cells as headings; an empty cell stays empty.
    void add(std::vector<std::string> cells);
    void print(std::FILE* to, TableFormat format) const;

  private:
    std::vector<std::vector<std::string>> rows_;
};

/// «2,196,016»
std::string grouped(std::uint64_t number);

}  // namespace gloved::bench
