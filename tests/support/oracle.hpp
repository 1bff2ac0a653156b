// The oracle of the tests is that of gloved-verify --engines: there is one.
#pragma once

#include "tools/verify/oracle.hpp"

namespace gloved::tests {

using verify::Eligible;
using verify::Lists;
using verify::oracle_cosmul;
using verify::oracle_query;
using verify::oracle_scores;
using verify::oracle_takes_lists;
using verify::oracle_top;
using verify::Weights;

}  // namespace gloved::tests
