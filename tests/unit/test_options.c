/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of a fabric and its runtime directory: softnic/options.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "rnic/rnic.h"
#include "softnic/options.h"

/* Parses words up to a NULL; returns the index that the parser returned. */
static int parse(struct sfnic_options *opt, ...)
{
	char *argv[16] = {"run"};
	int argc = 1;
	va_list args;
	char *word;

	va_start(args, opt);
	while ((word = va_arg(args, char *)))
		argv[argc++] = word;
	va_end(args);
	return sfnic_options_parse(opt, argc, argv);
}

/* ---- the command line ----------------------------------------------- */

static void no_options_give_the_defaults(void **state)
{
	struct sfnic_options opt;

	(void)state;
	assert_int_equal(parse(&opt, "program", NULL), 1);
	assert_int_equal(opt.devices, 1);
	assert_int_equal(opt.ports, 1);
	assert_int_equal(opt.link_layer, RNIC_INFINIBAND);
	assert_int_equal(opt.mtu, SFNIC_MTU_AUTO);
	assert_string_equal(opt.name, "sfab");
	assert_int_equal(opt.arena_size, 32ULL << 30);
	assert_int_equal(opt.linger, 10);
	assert_string_equal(opt.instance, "");
	assert_false(opt.given);
}

static void both_forms_of_an_option_are_taken(void **state)
{
	struct sfnic_options opt;

	(void)state;
	assert_int_equal(parse(&opt, "--devices", "2", "--mtu=1024", "--ports",
			       "2", "--link-layer=eth", "--name", "mlx5_",
			       "--arena=2g", "ls", "--ports", NULL),
			 10);
	assert_int_equal(opt.devices, 2);
	assert_int_equal(opt.ports, 2);
	assert_int_equal(opt.mtu, RNIC_MTU_1024);
	assert_int_equal(opt.link_layer, RNIC_ETHERNET);
	assert_string_equal(opt.name, "mlx5_");
	assert_int_equal(opt.arena_size, 2ULL << 30);
	assert_true(opt.given);
}

static void parsing_ends_at_the_first_other_word(void **state)
{
	struct sfnic_options opt;

	(void)state;
	assert_int_equal(parse(&opt, "--mtu", "256", "--", "--mtu", NULL), 3);
	assert_int_equal(parse(&opt, "--unknown", NULL), 1);
	assert_int_equal(parse(&opt, "--mtus=256", NULL), 1);
	assert_int_equal(parse(&opt, "-x", NULL), 1);
}

static void an_instance_alone_asks_for_no_other_fabric(void **state)
{
	struct sfnic_options opt;

	(void)state;
	assert_int_equal(parse(&opt, "--instance", "b", NULL), 3);
	assert_string_equal(opt.instance, "b");
	assert_false(opt.given);
}

static void bad_values_are_refused(void **state)
{
	static char *const bad[] = {
		"--devices=0",
		"--devices=9",
		"--devices=1x",
		"--devices=",
		"--devices=-1",
		"--devices= 1",
		"--ports=3",
		"--mtu=1500",
		"--link-layer=roce",
		"--arena=64M",
		"--arena=1X",
		"--arena=1GB",
		"--arena=65T",
		"--name=",
		"--name=1st",
		"--name=a/b",
		"--name=../etc",
		"--instance=../x",
		"--instance=.",
		"--instance=a b",
		"--linger=0",
		"--linger=1h",
		"--arena=18446744073709551616",
		"--name=a123456789012345678901234567890",
		"--addr=127.0.0.2",
		"--addr=127.0.0.2=8",
		"--addr=127.0.0.2=1", /* there is one device */
		"--addr=host=0",
		"--addr=1:2:3:4:5:6:7:8=0,1:2:3:4:5:6:7:8:9=0",
		"--devices", /* no value at all */
	};
	struct sfnic_options opt;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(&opt, bad[i], NULL) != -1)
			fail_msg("%s was taken", bad[i]);
}

static void the_longest_name_leaves_room_for_the_digit(void **state)
{
	struct sfnic_options opt;

	(void)state;
	assert_int_equal(
		parse(&opt, "--name=a12345678901234567890123456789", NULL), 2);
	assert_int_equal(strlen(opt.name), RNIC_NAME_MAX - 2);
}

/* ---- the line ------------------------------------------------------- */

static void the_line_parses_back_to_the_same_options(void **state)
{
	struct sfnic_options opt, again;
	char line[SFNIC_OPTIONS_LINE], other[SFNIC_OPTIONS_LINE],
		words[16][256], *argv[16] = {"x"};
	char *save, *word;
	int n = 1;

	(void)state;
	parse(&opt, "--devices=8", "--ports=2", "--link-layer=ethernet",
	      "--mtu=512", "--name=a12345678901234567890123456789",
	      "--arena=64T", "--linger=31536000", "--host-devices=show",
	      "--devices=2", "--addr=127.0.0.2=1,::1=0", NULL);
	sfnic_options_line(&opt, line, sizeof(line));
	assert_true(strlen(line) < sizeof(line) - 1);
	snprintf(other, sizeof(other), "%s", line);
	for (word = strtok_r(other, " ", &save); word;
	     word = strtok_r(NULL, " ", &save), n++) {
		snprintf(words[n], sizeof(words[n]), "--%s", word);
		argv[n] = words[n];
	}
	assert_int_equal(sfnic_options_parse(&again, n, argv), n);
	sfnic_options_line(&again, other, sizeof(other));
	assert_string_equal(line, other);
}

static void addresses_belong_to_devices(void **state)
{
	struct sfnic_options opt;
	uint8_t v4[4] = {127, 0, 0, 2}, v6[16] = {[15] = 1};

	(void)state;
	assert_int_equal(parse(&opt, "--addr", "127.0.0.2=1,0:0::1=2",
			       "--addr=10.0.0.1=0", "--devices=3", NULL),
			 5);
	assert_string_equal(opt.addrs, "127.0.0.2=1,::1=2,10.0.0.1=0");
	assert_int_equal(sfnic_addr_device(opt.addrs, AF_INET, v4), 1);
	assert_int_equal(sfnic_addr_device(opt.addrs, AF_INET6, v6), 2);
	v4[3] = 20;
	assert_int_equal(sfnic_addr_device(opt.addrs, AF_INET, v4), -1);
	assert_int_equal(sfnic_addr_device("-", AF_INET, v4), -1);
}

static void the_line_does_not_tell_fabrics_of_equal_options_apart(void **state)
{
	struct sfnic_options a, b;
	char line_a[SFNIC_OPTIONS_LINE], line_b[SFNIC_OPTIONS_LINE];

	(void)state;
	parse(&a, "--instance=one", NULL);
	parse(&b, "--devices=1", "--link-layer=ib", NULL);
	sfnic_options_line(&a, line_a, sizeof(line_a));
	sfnic_options_line(&b, line_b, sizeof(line_b));
	assert_string_equal(line_a, line_b);
}

/* ---- the runtime directory ------------------------------------------ */

static char base[64];

static int make_base(void **state)
{
	(void)state;
	unsetenv("SFNIC_DIR");
	strcpy(base, "/tmp/test_options.XXXXXX");
	if (!mkdtemp(base))
		return -1;
	return setenv("XDG_RUNTIME_DIR", base, 1);
}

static int remove_base(void **state)
{
	char command[128];

	(void)state;
	unsetenv("SFNIC_DIR");
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

static int runtime_dir(const char *instance, char dir[256])
{
	char msg[256] = "";
	int err = sfnic_runtime_dir(instance, dir, 256, msg, sizeof(msg));

	/* An error says what it is, in one line. */
	assert_int_equal(!err, !msg[0]);
	assert_null(strchr(msg, '\n'));
	return err;
}

static void the_directory_is_made_for_its_owner_alone(void **state)
{
	char dir[256];
	struct stat st;

	(void)state;
	assert_int_equal(runtime_dir("", dir), 0);
	assert_memory_equal(dir, base, strlen(base));
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(st.st_uid, geteuid());
}

static void the_same_call_gives_the_same_directory(void **state)
{
	char a[256], b[256], other[256];

	(void)state;
	assert_int_equal(runtime_dir("x", a), 0);
	assert_int_equal(runtime_dir("x", b), 0);
	assert_int_equal(runtime_dir("y", other), 0);
	assert_string_equal(a, b);
	assert_string_not_equal(a, other);
}

static void a_directory_from_the_environment_wins(void **state)
{
	char name[128], dir[256];

	(void)state;
	snprintf(name, sizeof(name), "%s/named", base);
	setenv("SFNIC_DIR", name, 1);
	assert_int_equal(runtime_dir("x", dir), 0);
	assert_string_equal(dir, name);
}

static void a_link_is_not_followed(void **state)
{
	char name[128], dir[256];

	(void)state;
	snprintf(name, sizeof(name), "%s/link", base);
	assert_int_equal(symlink(base, name), 0);
	setenv("SFNIC_DIR", name, 1);
	assert_int_equal(runtime_dir("", dir), ENOTDIR);
}

static void a_directory_that_others_enter_is_refused(void **state)
{
	char name[128], dir[256];

	(void)state;
	snprintf(name, sizeof(name), "%s/open", base);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_equal(chmod(name, 0755), 0);
	setenv("SFNIC_DIR", name, 1);
	assert_int_equal(runtime_dir("", dir), EPERM);
}

static void a_directory_of_somebody_else_is_refused(void **state)
{
	char name[128], dir[256];

	(void)state;
	snprintf(name, sizeof(name), "%s/theirs", base);
	assert_int_equal(mkdir(name, 0700), 0);
	if (chown(name, 12345, -1))
		skip(); /* takes root */
	setenv("SFNIC_DIR", name, 1);
	assert_int_equal(runtime_dir("", dir), EPERM);
}

static void relative_and_overlong_paths_are_refused(void **state)
{
	char name[300], dir[256];

	(void)state;
	setenv("SFNIC_DIR", "here", 1);
	assert_int_equal(runtime_dir("", dir), EINVAL);
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	setenv("SFNIC_DIR", name, 1);
	assert_int_equal(runtime_dir("", dir), ENAMETOOLONG);
}

static void an_unusable_runtime_dir_of_the_session_is_passed_over(void **state)
{
	char dir[256];

	(void)state;
	setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
	assert_int_equal(runtime_dir("test-options", dir), 0);
	assert_int_not_equal(strncmp(dir, "/nonexistent", 12), 0);
	rmdir(dir);
}

#define WITH_BASE(test) \
	cmocka_unit_test_setup_teardown(test, make_base, remove_base)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_options_give_the_defaults),
		cmocka_unit_test(both_forms_of_an_option_are_taken),
		cmocka_unit_test(parsing_ends_at_the_first_other_word),
		cmocka_unit_test(an_instance_alone_asks_for_no_other_fabric),
		cmocka_unit_test(bad_values_are_refused),
		cmocka_unit_test(the_longest_name_leaves_room_for_the_digit),
		cmocka_unit_test(addresses_belong_to_devices),
		cmocka_unit_test(the_line_parses_back_to_the_same_options),
		cmocka_unit_test(
			the_line_does_not_tell_fabrics_of_equal_options_apart),
		WITH_BASE(the_directory_is_made_for_its_owner_alone),
		WITH_BASE(the_same_call_gives_the_same_directory),
		WITH_BASE(a_directory_from_the_environment_wins),
		WITH_BASE(a_link_is_not_followed),
		WITH_BASE(a_directory_that_others_enter_is_refused),
		WITH_BASE(a_directory_of_somebody_else_is_refused),
		WITH_BASE(relative_and_overlong_paths_are_refused),
		WITH_BASE(
			an_unusable_runtime_dir_of_the_session_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
