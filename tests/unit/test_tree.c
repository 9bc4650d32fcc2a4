/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree by which programs find the devices: softnic/tree.c, tree_net.c,
 * port_counters.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "softnic/port_counters.h"
#include "softnic/tree.h"

/* ---- a device model and a directory --------------------------------- */

static void lock_init(void *host, struct rnic_lock *lock)
{
	(void)host;
	(void)lock;
}

static const struct rnic_host_ops ops = {.lock_init = lock_init};

static struct fixture {
	void *arena;
	struct rnic rnic;
	struct tree_host host;
	char dir[64];
} fx;

static const struct tree_net net = {
	.name = "eth7",
	.mtu = 1500,
	.rnic_mtu = RNIC_MTU_1024,
};

static int set_up(void **state)
{
	(void)state;
	fx.arena = mmap(NULL, RNIC_ARENA_DYNAMIC, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	tree_host_find(&fx.host, NULL);
	strcpy(fx.dir, "/tmp/test_tree.XXXXXX");
	return fx.arena == MAP_FAILED || !mkdtemp(fx.dir) ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	munmap(fx.arena, RNIC_ARENA_DYNAMIC);
	assert_int_equal(tree_remove(fx.dir), 0);
	/* It must have left nothing behind. */
	return rmdir(fx.dir);
}

static void make_rnic(uint32_t devices, uint32_t ports, uint32_t link_layer)
{
	const struct rnic_config config = {
		.devices = devices,
		.ports = ports,
		.link_layer = link_layer,
		.mtu = RNIC_MTU_4096,
		.guid = 0x0200112233445500ull,
		.name = "sfab",
	};

	memset(fx.arena, 0, 4096);
	assert_int_equal(rnic_create(&fx.rnic, fx.arena, RNIC_ARENA_DYNAMIC,
				     &config, &ops, NULL),
			 0);
}

static void make_tree(const struct tree_net *interface)
{
	char msg[256] = "";
	int err;

	err = tree_create(&fx.rnic, fx.dir, interface, &fx.host, msg,
			  sizeof(msg));

	assert_string_equal(msg, "");
	assert_int_equal(err, 0);
}

static void path_of(char out[256], const char *path)
{
	snprintf(out, 256, "%s/%s", fx.dir, path);
}

static void says(const char *path, const char *want)
{
	char full[256], text[256] = "";
	FILE *f;

	path_of(full, path);
	f = fopen(full, "r");
	if (!f)
		fail_msg("%s is missing", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	assert_true(strlen(text) && text[strlen(text) - 1] == '\n');
	text[strlen(text) - 1] = '\0';
	if (strcmp(text, want))
		fail_msg("%s says '%s', not '%s'", path, text, want);
}

static int there(const char *path)
{
	char full[256];

	path_of(full, path);
	return !access(full, F_OK);
}

/* ---- the tree ------------------------------------------------------- */

#define IB "sys/class/infiniband/"
#define VERBS "sys/class/infiniband_verbs/"
#define MAD "sys/class/infiniband_mad/"

static void a_device_reads_as_the_kernel_prints_it(void **state)
{
	(void)state;
	make_rnic(2, 1, RNIC_INFINIBAND);
	make_tree(&net);
	says(IB "sfab1/node_type", "1: CA");
	says(IB "sfab1/fw_ver", "0.1.0");
	says(IB "sfab1/hw_rev", "0");
	says(IB "sfab1/hca_type", "SF-SOFT");
	says(IB "sfab1/node_guid", "0200:1122:3344:5510");
	says(IB "sfab1/sys_image_guid", "0200:1122:3344:5500");
	says(IB "sfab1/device/modalias", "scalefabric:soft");
	says(IB "sfab1/device/vendor", "0x1cb8");
	says(IB "sfab1/device/numa_node", "-1");
	says(IB "sfab1/device/class", "0x020700");
}

static void an_infiniband_port_reads_as_the_kernel_prints_it(void **state)
{
	(void)state;
	make_rnic(1, 2, RNIC_INFINIBAND);
	make_tree(&net);
	says(IB "sfab0/ports/2/lid", "0x2");
	says(IB "sfab0/ports/2/lid_mask_count", "0x0");
	says(IB "sfab0/ports/2/sm_lid", "0x1");
	says(IB "sfab0/ports/2/sm_sl", "0");
	says(IB "sfab0/ports/2/state", "4: ACTIVE");
	says(IB "sfab0/ports/2/phys_state", "5: LinkUp");
	says(IB "sfab0/ports/2/rate", "400 Gb/sec (4X NDR)");
	says(IB "sfab0/ports/2/link_layer", "InfiniBand");
	says(IB "sfab0/ports/2/pkeys/0", "0xffff");
	says(IB "sfab0/ports/2/gids/0",
	     "fe80:0000:0000:0000:0200:1122:3344:5502");
	says(IB "sfab0/ports/2/gids/15",
	     "0000:0000:0000:0000:0000:0000:0000:0000");
	says(IB "sfab0/ports/2/gid_attrs/types/0", "IB/RoCE v1");
	assert_false(there(IB "sfab0/ports/2/gid_attrs/types/1"));
	assert_false(there(IB "sfab0/ports/2/gid_attrs/ndevs/0"));
	says(IB "sfab0/ports/2/counters/port_xmit_data", "0");
	says(IB "sfab0/ports/2/hw_counters/rnr_nak_retry_err", "0");
}

static void the_first_device_names_its_interface(void **state)
{
	char path[256], to[256] = "";

	(void)state;
	make_rnic(2, 1, RNIC_INFINIBAND);
	make_tree(&net);
	path_of(path, IB "sfab0/device/net/eth7");
	assert_true(readlink(path, to, sizeof(to) - 1) > 0);
	assert_string_equal(to, "/sys/class/net/eth7");
	assert_false(there(IB "sfab1/device/net"));
}

static void an_ethernet_port_names_its_interface(void **state)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 192, 0, 2, 9};

	(void)state;
	make_rnic(1, 1, RNIC_ETHERNET);
	assert_int_equal(rnic_port_add_gid(&fx.rnic, 0, 1, gid), 0);
	make_tree(&net);
	says(IB "sfab0/ports/1/link_layer", "Ethernet");
	says(IB "sfab0/ports/1/lid", "0x0");
	says(IB "sfab0/ports/1/gids/0",
	     "0000:0000:0000:0000:0000:ffff:c000:0209");
	says(IB "sfab0/ports/1/gid_attrs/types/0", "RoCE v2");
	says(IB "sfab0/ports/1/gid_attrs/ndevs/0", "eth7");
	says(IB "sfab0/device/class", "0x020000");
}

static void ethernet_without_an_interface_has_a_tree(void **state)
{
	static const struct tree_net none;

	(void)state;
	make_rnic(1, 1, RNIC_ETHERNET);
	make_tree(NULL);
	assert_true(there(IB "sfab0/node_guid"));
	make_tree(&none);
	assert_true(there(IB "sfab0/node_guid"));
	assert_false(there(IB "sfab0/device/net"));
}

static void every_class_leads_to_the_device(void **state)
{
	(void)state;
	make_rnic(2, 2, RNIC_INFINIBAND);
	make_tree(&net);
	says(VERBS "abi_version", "6");
	says(VERBS "uverbs1/ibdev", "sfab1");
	says(VERBS "uverbs1/dev", "231:193");
	says(VERBS "uverbs1/abi_version", "1");
	says(VERBS "uverbs1/device/modalias", "scalefabric:soft");
	says(MAD "abi_version", "5");
	says(MAD "umad3/ibdev", "sfab1");
	says(MAD "umad3/port", "2");
	says(IB "sfab1/device/infiniband/sfab1/node_type", "1: CA");
	says(IB "sfab1/device/infiniband_verbs/uverbs1/ibdev", "sfab1");
	assert_true(there("dev/infiniband/uverbs1"));
	assert_true(there("dev/infiniband/umad3"));
	says("sys/class/misc/rdma_cm/abi_version", "4");
	assert_true(there("dev/infiniband/rdma_cm"));
}

static void a_new_tree_takes_the_place_of_an_old_one(void **state)
{
	(void)state;
	make_rnic(8, 2, RNIC_INFINIBAND);
	make_tree(&net);
	make_rnic(1, 1, RNIC_INFINIBAND);
	make_tree(&net);
	assert_true(there(IB "sfab0"));
	assert_false(there(IB "sfab7"));
	assert_false(there("dev/infiniband/uverbs7"));
	assert_false(there("tree.new"));
}

static void a_failure_names_the_file(void **state)
{
	char msg[256] = "";

	(void)state;
	make_rnic(1, 1, RNIC_INFINIBAND);
	assert_int_equal(tree_create(&fx.rnic, "/nonexistent", NULL, &fx.host,
				     msg, sizeof(msg)),
			 ENOENT);
	assert_non_null(strstr(msg, "/nonexistent"));
}

/* ---- the host's own devices ----------------------------------------- */

static void host_dir(const char *root, const char *path)
{
	char full[256], *p;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	assert_int_equal(mkdir(full, 0755), 0);
}

static void links(const char *path, const char *root)
{
	char full[256], target[256] = "", want[256];

	path_of(full, path);
	assert_true(readlink(full, target, sizeof(target) - 1) > 0);
	snprintf(want, sizeof(want), "%s/%s", root, path);
	assert_string_equal(target, want);
}

static void host_devices_stand_before_ours(void **state)
{
	char root[] = "/tmp/test_tree_host.XXXXXX", msg[256] = "";

	(void)state;
	assert_non_null(mkdtemp(root));
	host_dir(root, IB "mlx5_0");
	host_dir(root, IB "mlx5_1");
	host_dir(root, VERBS "uverbs0");
	host_dir(root, VERBS "uverbs3");
	host_dir(root, VERBS "abi_version");
	host_dir(root, MAD "umad0");
	host_dir(root, MAD "issm0");
	host_dir(root, "dev/infiniband/uverbs0");
	host_dir(root, "dev/infiniband/uverbs3");
	host_dir(root, "dev/infiniband/rdma_cm");
	tree_host_find(&fx.host, root);
	assert_int_equal(fx.host.uverbs, 4);
	assert_int_equal(fx.host.umad, 1);
	make_rnic(2, 1, RNIC_INFINIBAND);
	make_tree(&net);
	links(IB "mlx5_0", root);
	links(IB "mlx5_1", root);
	links(VERBS "uverbs3", root);
	links(MAD "issm0", root);
	links("dev/infiniband/uverbs3", root);
	/* There is one for all devices: ours. */
	assert_true(there("dev/infiniband/rdma_cm"));
	says(VERBS "abi_version", "6");
	says(VERBS "uverbs4/ibdev", "sfab0");
	says(VERBS "uverbs5/ibdev", "sfab1");
	says(VERBS "uverbs5/dev", "231:197");
	says(IB "sfab1/device/infiniband_verbs/uverbs5/ibdev", "sfab1");
	says(MAD "umad1/ibdev", "sfab0");
	assert_true(there("dev/infiniband/uverbs5"));
	assert_false(there("dev/infiniband/uverbs1"));
	/* What goes is ours alone. */
	assert_int_equal(tree_remove(fx.dir), 0);
	assert_int_equal(access(root, F_OK), 0);
	host_dir(root, IB "mlx5_0/still");

	host_dir(root, IB "sfab1");
	assert_int_equal(tree_create(&fx.rnic, fx.dir, NULL, &fx.host, msg,
				     sizeof(msg)),
			 EEXIST);
	assert_non_null(strstr(msg, "sfab1"));
	assert_non_null(strstr(msg, "--name"));
	assert_int_equal(tree_remove(root), 0);
	assert_int_equal(rmdir(root), 0);
}

static void host_without_devices_changes_nothing(void **state)
{
	(void)state;
	tree_host_find(&fx.host, "/nonexistent");
	make_rnic(1, 1, RNIC_INFINIBAND);
	make_tree(&net);
	says(VERBS "uverbs0/ibdev", "sfab0");
}

/* ---- interface ------------------------------------------------------ */

static void the_mtu_leaves_room_for_the_headers(void **state)
{
	(void)state;
	assert_int_equal(tree_rnic_mtu(100), RNIC_MTU_256);
	assert_int_equal(tree_rnic_mtu(1500), RNIC_MTU_1024);
	assert_int_equal(tree_rnic_mtu(4096), RNIC_MTU_2048);
	assert_int_equal(tree_rnic_mtu(4096 + 96), RNIC_MTU_4096);
	assert_int_equal(tree_rnic_mtu(65536), RNIC_MTU_4096);
}

static void the_link_local_gid_is_the_eui_64_of_the_mac(void **state)
{
	static const uint8_t mac[6] = {0x02, 0xfc, 0x00, 0xaa, 0xbb, 0xcc};
	static const uint8_t want[16] = {0xfe, 0x80, 0,	   0,	 0,    0,
					 0,    0,    0x00, 0xfc, 0x00, 0xff,
					 0xfe, 0xaa, 0xbb, 0xcc};
	uint8_t gid[16];

	(void)state;
	tree_link_local_gid(mac, gid);
	assert_memory_equal(gid, want, sizeof(gid));
}

static void the_host_has_an_interface(void **state)
{
	struct tree_net found;

	(void)state;
	if (tree_host_net(&found))
		skip(); /* no netlink here */
	assert_true(found.name[0]);
	assert_in_range(found.gids, 1, RNIC_MAX_GIDS);
	assert_int_equal(found.gid[0][0], 0xfe);
	assert_int_equal(found.rnic_mtu, tree_rnic_mtu(found.mtu));
}

/* ---- counters ------------------------------------------------------- */

static void data_counters_are_in_words_of_four_bytes(void **state)
{
	const struct rnic_counters values = {.xmit_bytes = 4096,
					     .xmit_packets = 3};
	const struct port_counter *c;

	(void)state;
	c = port_counter_find("counters", 8, "port_xmit_data", 14);
	assert_int_equal(port_counter_value(c, &values), 1024);
	c = port_counter_find("counters", 8, "port_xmit_packets", 17);
	assert_int_equal(port_counter_value(c, &values), 3);
	c = port_counter_find("counters", 8, "symbol_error", 12);
	assert_int_equal(port_counter_value(c, &values), 0);
	assert_null(port_counter_find("counters", 8, "port_xmit_dat", 13));
	assert_null(port_counter_find("counter", 7, "port_xmit_data", 14));
}

static void a_value_is_printed_in_decimal(void **state)
{
	char buf[25] = "";

	(void)state;
	buf[port_counter_format(buf, 0)] = '\0';
	assert_string_equal(buf, "0\n");
	buf[port_counter_format(buf, UINT64_MAX)] = '\0';
	assert_string_equal(buf, "18446744073709551615\n");
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TREE(a_device_reads_as_the_kernel_prints_it),
		WITH_TREE(an_infiniband_port_reads_as_the_kernel_prints_it),
		WITH_TREE(the_first_device_names_its_interface),
		WITH_TREE(an_ethernet_port_names_its_interface),
		WITH_TREE(ethernet_without_an_interface_has_a_tree),
		WITH_TREE(every_class_leads_to_the_device),
		WITH_TREE(a_new_tree_takes_the_place_of_an_old_one),
		WITH_TREE(a_failure_names_the_file),
		WITH_TREE(host_devices_stand_before_ours),
		WITH_TREE(host_without_devices_changes_nothing),
		cmocka_unit_test(the_mtu_leaves_room_for_the_headers),
		cmocka_unit_test(the_link_local_gid_is_the_eui_64_of_the_mac),
		cmocka_unit_test(the_host_has_an_interface),
		cmocka_unit_test(data_counters_are_in_words_of_four_bytes),
		cmocka_unit_test(a_value_is_printed_in_decimal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
