/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which paths are led into the tree: softnic/paths.c.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softnic/paths.h"

static void paths_of_devices_lead_into_the_tree(void **state)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{"/sys/class/infiniband", "/run/x/sys/class/infiniband"},
		{"/sys/class/infiniband/", "/run/x/sys/class/infiniband/"},
		{"//sys/./class//infiniband/sfab0/../a",
		 "/run/x/sys/class/infiniband/sfab0/../a"},
		{"/sys/class/net/../infiniband_verbs/uverbs0/dev",
		 "/run/x/sys/class/infiniband_verbs/uverbs0/dev"},
		{"/sys/class/infiniband_verbs/../infiniband/a",
		 "/run/x/sys/class/infiniband/a"},
		{"/sys/class/infiniband_mad/umad0",
		 "/run/x/sys/class/infiniband_mad/umad0"},
		{"/sys/class/misc/rdma_cm/abi_version",
		 "/run/x/sys/class/misc/rdma_cm/abi_version"},
	};
	struct place place;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(place_find(&place, "/run/x", AT_FDCWD,
					       cases[i].path),
				    cases[i].want);
		assert_int_equal(place.kind, PLACE_TREE);
	}
}

static void other_paths_stay_as_they_are(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"/etc/passwd",
		"infiniband",
		"/sys/class/infiniband_srp",
		"/sys/class/infinibandx/a",
		"/sys/class/infiniband/..",
		"/sys/class/infiniband/../net/lo",
		"/dev/infiniband/../null",
		"/sys/class/misc/fuse",
		"/home/rdma_cm",
		"/home/infiniband/sys/class/infiniband",
		"/run/x/sys/class/infiniband/sfab0",
	};
	struct place place;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_ptr_equal(place_find(&place, "/run/x", AT_FDCWD,
					    paths[i]),
				 paths[i]);
		assert_int_equal(place.kind, PLACE_ELSEWHERE);
	}
	assert_null(place_find(&place, "/run/x", AT_FDCWD, NULL));
}

static void relative_paths_are_followed_from_their_directory(void **state)
{
	int sys = open("/sys", O_RDONLY | O_DIRECTORY);
	struct place place;

	(void)state;
	if (sys < 0)
		skip();
	assert_string_equal(place_find(&place, "/run/x", sys,
				       "class/infiniband/a"),
			    "/run/x/sys/class/infiniband/a");
	place_find(&place, "/run/x", sys, "infiniband");
	assert_int_equal(place.kind, PLACE_ELSEWHERE);
	place_find(&place, "/run/x", 9999, "class/infiniband");
	assert_int_equal(place.kind, PLACE_ELSEWHERE);
	close(sys);
}

static void device_nodes_are_told_from_files(void **state)
{
	struct place place;

	(void)state;
	place_find(&place, "/run/x", AT_FDCWD, "/dev/infiniband/uverbs12");
	assert_int_equal(place.kind, PLACE_UVERBS);
	assert_int_equal(place.unit, 12);
	place_find(&place, "/run/x", AT_FDCWD, "/dev/infiniband/umad0");
	assert_int_equal(place.kind, PLACE_UMAD);
	place_find(&place, "/run/x", AT_FDCWD, "/dev/infiniband/uverbs");
	assert_int_equal(place.kind, PLACE_TREE);
	place_find(&place, "/run/x", AT_FDCWD, "/dev/infiniband/uverbs0x");
	assert_int_equal(place.kind, PLACE_TREE);
	place_find(&place, "/run/x", AT_FDCWD,
		   "/dev/infiniband/uverbs99999999999");
	assert_int_equal(place.kind, PLACE_TREE);
}

static void overlong_paths_stay_as_they_are(void **state)
{
	char path[4096] = "/sys/class/infiniband/";
	struct place place;

	(void)state;
	memset(path + strlen(path), 'x', sizeof(path) - strlen(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_ptr_equal(place_find(&place, "/run/x", AT_FDCWD, path), path);
	assert_int_equal(place.kind, PLACE_ELSEWHERE);
}

static void programs_see_the_paths_that_they_know(void **state)
{
	(void)state;
	assert_string_equal(place_shown("/run/x",
					"/run/x/sys/class/infiniband/a"),
			    "/sys/class/infiniband/a");
	assert_string_equal(place_shown("/run/x", "/run/x/sys/class"),
			    "/run/x/sys/class");
	assert_string_equal(place_shown("/run/x", "/run/xy/dev/infiniband"),
			    "/run/xy/dev/infiniband");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_devices_lead_into_the_tree),
		cmocka_unit_test(other_paths_stay_as_they_are),
		cmocka_unit_test(
			relative_paths_are_followed_from_their_directory),
		cmocka_unit_test(device_nodes_are_told_from_files),
		cmocka_unit_test(overlong_paths_stay_as_they_are),
		cmocka_unit_test(programs_see_the_paths_that_they_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
