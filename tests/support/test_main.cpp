// The main function of every test program. It ends with status 77, which ctest counts as skipped,
// if cases were skipped, none ran and nothing failed. That status alone skips a test: no words that
// a program prints do.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

/// Whether this process may have no case though others have some: the first shard has the first.
bool is_later_shard() {
    const char* index = std::getenv("GTEST_SHARD_INDEX");
    return index != nullptr && std::strcmp(index, "0") != 0;
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const int status = RUN_ALL_TESTS();
    if (status != 0 || testing::GTEST_FLAG(list_tests)) return status;
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() == 0 && !is_later_shard()) {
        std::fprintf(stderr, "no case is called %s\n", testing::GTEST_FLAG(filter).c_str());
        return EXIT_FAILURE;
    }
    const bool all_skipped = tests.skipped_test_count() > 0 && tests.successful_test_count() == 0;
    return all_skipped ? kSkipped : EXIT_SUCCESS;
}
