/* SPDX-License-Identifier: GPL-2.0-only */
/* What the KUnit suites of the laws need of KUnit, in user space: a program a suite */
#ifndef _DRWA_TEST_KUNIT_H
#define _DRWA_TEST_KUNIT_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KUnit's own header brings these. */
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

struct kunit {
	bool failed;
	jmp_buf end;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	const struct kunit_case *test_cases;
};

#define KUNIT_CASE(test_name)	{ .run_case = test_name, .name = #test_name }

#define KUNIT_HOLDS(test, condition, otherwise)	do {				\
	if (!(condition)) {							\
		(test)->failed = true;						\
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);	\
		otherwise;							\
	}									\
} while (0)

#define KUNIT_EXPECT_TRUE(test, a)	KUNIT_HOLDS(test, a, )
#define KUNIT_EXPECT_FALSE(test, a)	KUNIT_HOLDS(test, !(a), )
#define KUNIT_EXPECT_EQ(test, a, b)	KUNIT_HOLDS(test, (a) == (b), )
#define KUNIT_EXPECT_NE(test, a, b)	KUNIT_HOLDS(test, (a) != (b), )
#define KUNIT_EXPECT_LT(test, a, b)	KUNIT_HOLDS(test, (a) < (b), )
#define KUNIT_EXPECT_LE(test, a, b)	KUNIT_HOLDS(test, (a) <= (b), )
#define KUNIT_EXPECT_GT(test, a, b)	KUNIT_HOLDS(test, (a) > (b), )
#define KUNIT_EXPECT_GE(test, a, b)	KUNIT_HOLDS(test, (a) >= (b), )

#define KUNIT_ASSERT_EQ(test, a, b)	KUNIT_HOLDS(test, (a) == (b), longjmp((test)->end, 1))
#define KUNIT_ASSERT_NE(test, a, b)	KUNIT_HOLDS(test, (a) != (b), longjmp((test)->end, 1))
#define KUNIT_ASSERT_LT(test, a, b)	KUNIT_HOLDS(test, (a) < (b), longjmp((test)->end, 1))
#define KUNIT_ASSERT_LE(test, a, b)	KUNIT_HOLDS(test, (a) <= (b), longjmp((test)->end, 1))
#define KUNIT_ASSERT_GE(test, a, b)	KUNIT_HOLDS(test, (a) >= (b), longjmp((test)->end, 1))
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(test, p)	KUNIT_HOLDS(test, p, longjmp((test)->end, 1))

#define kunit_info(test, format, ...)	printf("# " format "\n", ##__VA_ARGS__)
#define kunit_kzalloc(test, size, flags)	calloc(1, size)
#define kunit_kfree(test, p)		free(p)

#define MODULE_LICENSE(text)		_Static_assert(1, text)
#define MODULE_DESCRIPTION(text)	_Static_assert(1, text)

#define kunit_test_suite(suite)							\
int main(void)									\
{										\
	int number = 0;								\
										\
	for (const struct kunit_case *one = (suite).test_cases; one->name; one++) {	\
		struct kunit test = { .failed = false };					\
										\
		if (!setjmp(test.end))						\
			one->run_case(&test);					\
		printf("%s %d %s\n", test.failed ? "not ok" : "ok", ++number, one->name); \
	}									\
	return 0;								\
}										\
_Static_assert(1, "")

#endif
