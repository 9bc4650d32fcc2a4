// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Steering rules, work queues and their tables as uverbs commands: what reaches
 * the device, and which errno malformed ones get (the kernel's
 * ib_uverbs_ex_create_flow() and its helpers).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/scalefabric-abi.h>

#include "scalefabric/sf_hw.h"
#include "uverbs_fake.h"

#define TEST(name) static void name(void **state __attribute__((unused)))

/* ---- extended commands ----------------------------------------------- */

struct ex_cmd {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex;
	uint8_t body[2048]; /* core part, then driver part */
};

/* 0 or a negative errno. */
static int run_ex(uint32_t command, const void *core, size_t core_len,
		  const void *driver, size_t driver_len, void *resp,
		  size_t resp_len, size_t driver_resp_len)
{
	struct ex_cmd cmd = {
		.hdr = {command | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			(core_len + 7) / 8, resp_len / 8},
		.ex = {.response = (uintptr_t)resp,
		       .provider_in_words = driver_len / 8,
		       .provider_out_words = driver_resp_len / 8},
	};
	size_t len = (core_len + 7) / 8 * 8;
	ssize_t n;

	memcpy(cmd.body, core, core_len);
	if (driver_len)
		memcpy(cmd.body + len, driver, driver_len);
	len += offsetof(struct ex_cmd, body) + driver_len;
	n = uverbs_write(&fake_ops, FAKE_CTX, FAKE_DEV, &cmd, len);
	if (n >= 0)
		assert_int_equal(n, len);
	return n < 0 ? n : 0;
}

/* ---- a rule ---------------------------------------------------------- */

struct rule {
	struct ib_uverbs_create_flow cmd;
	uint8_t specs[1024];
	size_t len;
};

static struct rule rule_new(void)
{
	return (struct rule){
		.cmd = {.qp_handle = FAKE_QPN,
			.flow_attr = {.port = 1, .priority = 3}},
	};
}

static void add_spec(struct rule *r, const void *spec, uint16_t size)
{
	memcpy(r->specs + r->len, spec, size);
	r->len += size;
	r->cmd.flow_attr.size += size;
	r->cmd.flow_attr.num_of_specs++;
}

static int create(const struct rule *r)
{
	struct ib_uverbs_create_flow_resp resp = {};
	uint8_t core[sizeof(r->cmd) + sizeof(r->specs)];

	memcpy(core, &r->cmd, sizeof(r->cmd));
	memcpy(core + sizeof(r->cmd), r->specs, r->len);
	return run_ex(IB_USER_VERBS_EX_CMD_CREATE_FLOW, core,
		      sizeof(r->cmd) + r->len, NULL, 0, &resp, sizeof(resp), 0);
}

static int setup(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

TEST(a_rule_without_specs_matches_everything)
{
	static const struct rnic_flow_key none;
	struct rule r = rule_new();

	r.cmd.flow_attr.flags = 1 << 1; /* don't trap */
	assert_int_equal(create(&r), 0);
	assert_int_equal(fake.req.op, SFNIC_CREATE_FLOW);
	assert_int_equal(fake.req.flow.qpn, FAKE_QPN);
	assert_int_equal(fake.req.flow.port, 1);
	assert_int_equal(fake.req.flow.priority, 3);
	assert_int_equal(fake.req.flow.flags, RNIC_FLOW_DONT_TRAP);
	assert_memory_equal(&fake.req.flow.mask, &none, sizeof(none));
}

/* A spec of @type with filters of @size: value 1, 2, 3 ..., mask 0x81 ... */
static void filter_spec(uint8_t *spec, uint32_t type, uint16_t size)
{
	struct ib_uverbs_flow_spec_hdr hdr = {.type = type,
					      .size = sizeof(hdr) + 2 * size};
	uint16_t i;

	memcpy(spec, &hdr, sizeof(hdr));
	for (i = 0; i < size; i++) {
		spec[sizeof(hdr) + i] = i + 1;
		spec[sizeof(hdr) + size + i] = 0x81 + i;
	}
}

/* Where the bytes of the kernel's filters go. */
struct place {
	uint16_t from, to, len;
};

#define TO(member) offsetof(struct rnic_headers, member)

static const struct {
	uint32_t type;
	uint32_t layer;
	uint16_t size;
	struct place place[7];
} kinds[] = {
	{0x20,
	 RNIC_LAYER_ETH,
	 16,
	 {{0, TO(dst_mac), 6},
	  {6, TO(src_mac), 6},
	  {12, TO(ether_type), 2},
	  {14, TO(vlan_tag), 2}}},
	{0x30,
	 RNIC_LAYER_IPV4,
	 12,
	 {{0, TO(src_ip), 4},
	  {4, TO(dst_ip), 4},
	  {8, TO(proto), 1},
	  {9, TO(tos), 1},
	  {10, TO(ttl), 1},
	  {11, TO(ip_flags), 1}}},
	{0x34, RNIC_LAYER_ESP, 8, {{0, TO(spi), 4}, {4, TO(seq), 4}}},
	{0x40, RNIC_LAYER_TCP, 4, {{0, TO(dst_port), 2}, {2, TO(src_port), 2}}},
	{0x41, RNIC_LAYER_UDP, 4, {{0, TO(dst_port), 2}, {2, TO(src_port), 2}}},
	{0x51,
	 RNIC_LAYER_GRE,
	 8,
	 {{0, TO(gre_flags), 2},
	  {2, TO(gre_protocol), 2},
	  {4, TO(gre_key), 4}}},
	{0x60, RNIC_LAYER_MPLS, 4, {{0, TO(mpls), 4}}},
};

TEST(each_spec_becomes_value_and_mask_of_its_layer)
{
	uint8_t spec[128];
	size_t i, p;
	int inner;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (inner = 0; inner < 2; inner++) {
			const struct rnic_headers *v, *m;
			struct rule r = rule_new();
			uint32_t layers = kinds[i].layer;

			fake_reset();
			filter_spec(spec, kinds[i].type | inner << 8,
				    kinds[i].size);
			add_spec(&r, spec, 8 + 2 * kinds[i].size);
			if (inner && kinds[i].layer == RNIC_LAYER_GRE) {
				assert_int_equal(create(&r), -EINVAL);
				continue;
			}
			assert_int_equal(create(&r), 0);
			v = inner ? &fake.req.flow.value.inner :
				    &fake.req.flow.value.outer;
			m = inner ? &fake.req.flow.mask.inner :
				    &fake.req.flow.mask.outer;
			if (kinds[i].layer == RNIC_LAYER_ETH)
				layers |= RNIC_LAYER_VLAN; /* its tag counts */
			assert_int_equal(v->layers, layers);
			assert_int_equal(m->layers, layers);
			for (p = 0; p < 7 && kinds[i].place[p].len; p++) {
				const struct place *at = &kinds[i].place[p];

				assert_memory_equal((uint8_t *)v + at->to,
						    spec + 8 + at->from,
						    at->len);
				assert_memory_equal((uint8_t *)m + at->to,
						    spec + 8 + kinds[i].size +
							    at->from,
						    at->len);
			}
		}
	}
}

TEST(an_ipv6_spec_has_a_flow_label_of_20_bits)
{
	struct ib_uverbs_flow_spec_ipv6 spec = {.type = 0x31,
						.size = sizeof(spec)};
	struct rule r = rule_new();

	memset(spec.mask.src_ip, 0xff, 16);
	spec.val.src_ip[15] = 5;
	spec.mask.flow_label = __builtin_bswap32(0xfffff);
	spec.val.flow_label = __builtin_bswap32(0xabcde);
	spec.val.next_hdr = 6;
	spec.val.traffic_class = 7;
	spec.val.hop_limit = 8;
	add_spec(&r, &spec, sizeof(spec));
	assert_int_equal(create(&r), 0);
	assert_int_equal(fake.req.flow.value.outer.layers, RNIC_LAYER_IPV6);
	assert_int_equal(fake.req.flow.value.outer.src_ip[15], 5);
	assert_int_equal(fake.req.flow.value.outer.flow_label,
			 __builtin_bswap32(0xabcde));
	assert_int_equal(fake.req.flow.value.outer.proto, 6);
	assert_int_equal(fake.req.flow.value.outer.tos, 7);
	assert_int_equal(fake.req.flow.value.outer.ttl, 8);

	spec.mask.flow_label = __builtin_bswap32(0x100000);
	r = rule_new();
	add_spec(&r, &spec, sizeof(spec));
	assert_int_equal(create(&r), -EINVAL);
}

TEST(a_vxlan_spec_has_a_number_of_24_bits)
{
	struct ib_uverbs_flow_spec_tunnel spec = {.type = 0x50,
						  .size = sizeof(spec)};
	struct rule r = rule_new();

	spec.val.tunnel_id = spec.mask.tunnel_id = __builtin_bswap32(0x76adf1);
	add_spec(&r, &spec, sizeof(spec));
	assert_int_equal(create(&r), 0);
	assert_int_equal(fake.req.flow.value.outer.layers, RNIC_LAYER_VXLAN);
	assert_int_equal(fake.req.flow.value.outer.vni,
			 __builtin_bswap32(0x76adf1));
	spec.val.tunnel_id = __builtin_bswap32(1 << 24);
	r = rule_new();
	add_spec(&r, &spec, sizeof(spec));
	assert_int_equal(create(&r), -EINVAL);
}

static void action_spec(struct rule *r, uint32_t type, uint32_t word,
			uint16_t size)
{
	struct ib_uverbs_flow_spec_action_tag spec = {
		.type = type, .size = size, .tag_id = word};

	add_spec(r, &spec, size);
}

TEST(actions_tag_drop_and_count)
{
	struct rule r = rule_new();

	action_spec(&r, 0x1000, 0xabcd, 16);
	action_spec(&r, 0x1001, 0, 8);
	action_spec(&r, 0x1003, 5, 16);
	assert_int_equal(create(&r), 0);
	assert_int_equal(fake.req.flow.tag, 0xabcd);
	assert_int_equal(fake.req.flow.flags, RNIC_FLOW_DROP);
	assert_int_equal(fake.req.flow.counters, 5);
}

TEST(malformed_specs_are_einval_and_reach_nobody)
{
	static const struct {
		uint32_t type;
		uint16_t size; /* that it says */
		uint16_t len;  /* that there is */
		uint16_t reserved;
	} bad[] = {
		{0x20, 0, 40, 0},     {0x20, 7, 40, 0},
		{0x20, 8, 8, 0},      {0x20, 9, 16, 0},
		{0x20, 40, 40, 1},    {0x20, 48, 40, 0},
		{0x20, 65535, 40, 0}, {0x20, 32, 40, 0},
		{0x22, 40, 40, 0},    {0x33, 24, 24, 0},
		{0, 16, 16, 0},	      {0x21, 40, 40, 0},
		{0x1000, 8, 8, 0},    {0x1000, 24, 24, 0},
		{0x1001, 16, 16, 0},  {0x1002, 16, 16, 0},
		{0x1003, 16, 16, 0},  {0x1003, 8, 8, 0},
		{0x1004, 16, 16, 0},  {~0u, 16, 16, 0},
		{0x150, 16, 16, 0}, /* a tunnel in a tunnel */
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ib_uverbs_flow_spec_hdr hdr = {
			.type = bad[i].type,
			.size = bad[i].size,
			.reserved = bad[i].reserved,
		};
		struct rule r = rule_new();
		uint8_t spec[64] = {};

		memcpy(spec, &hdr, sizeof(hdr));
		add_spec(&r, spec, bad[i].len);
		assert_int_equal(create(&r), -EINVAL);
		assert_int_equal(fake.calls, 0);
	}
}

TEST(a_longer_filter_may_say_nothing_new)
{
	uint8_t spec[8 + 2 * 24] = {};
	struct ib_uverbs_flow_spec_hdr hdr = {.type = 0x20,
					      .size = sizeof(spec)};
	struct rule r = rule_new();

	memcpy(spec, &hdr, sizeof(hdr));
	spec[8] = spec[8 + 24] = 0x33; /* value and mask of dst_mac */
	add_spec(&r, spec, sizeof(spec));
	assert_int_equal(create(&r), 0);
	assert_int_equal(fake.req.flow.value.outer.dst_mac[0], 0x33);
	assert_int_equal(fake.req.flow.mask.outer.dst_mac[0], 0x33);
	spec[8 + 24 + 16] = 1;
	r = rule_new();
	add_spec(&r, spec, sizeof(spec));
	assert_int_equal(create(&r), -EINVAL);
}

TEST(a_layer_comes_once)
{
	static const uint32_t pairs[][2] = {
		{0x20, 0x20}, {0x30, 0x31}, {0x40, 0x41},   {0x34, 0x40},
		{0x50, 0x51}, {0x60, 0x60}, {0x130, 0x130},
	};
	uint8_t spec[128] = {};
	size_t i, n;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct rule r = rule_new();

		for (n = 0; n < 2; n++) {
			struct ib_uverbs_flow_spec_hdr hdr = {
				.type = pairs[i][n], .size = 16};

			memcpy(spec, &hdr, sizeof(hdr));
			add_spec(&r, spec, 16);
		}
		assert_int_equal(create(&r), -EINVAL);
		assert_int_equal(fake.calls, 0);
	}
}

TEST(what_the_attributes_say_must_fit)
{
	struct rule r = rule_new(), good;
	uint8_t spec[40];

	filter_spec(spec, 0x20, 16);
	add_spec(&r, spec, sizeof(spec));
	good = r;
	assert_int_equal(create(&r), 0);
	fake.calls = 0;

	r.cmd.comp_mask = 1;
	assert_int_equal(create(&r), -EINVAL);
	r = good;
	r.cmd.flow_attr.flags = 1 << 3;
	assert_int_equal(create(&r), -EINVAL);
	r = good;
	r.cmd.flow_attr.flags = 1 << 2; /* egress */
	assert_int_equal(create(&r), -EOPNOTSUPP);
	r = good;
	r.cmd.flow_attr.num_of_specs = 2; /* there is one */
	assert_int_equal(create(&r), -EINVAL);
	r = good;
	r.cmd.flow_attr.num_of_specs = 11;
	assert_int_equal(create(&r), -EINVAL);
	r = good;
	r.cmd.flow_attr.num_of_specs = 0; /* what is it, then? */
	assert_int_equal(create(&r), -EINVAL);
	r = good;
	r.cmd.flow_attr.size = 2000;
	assert_int_equal(create(&r), -ENOSPC);
	r = good;
	r.cmd.flow_attr.type = 4;
	assert_int_equal(create(&r), -EINVAL);
	r = good;
	r.cmd.flow_attr.type = RNIC_FLOW_SNIFFER; /* has no specs */
	assert_int_equal(create(&r), -EINVAL);
	r = rule_new();
	r.cmd.flow_attr.type = RNIC_FLOW_ALL_DEFAULT;
	r.cmd.flow_attr.flags = 1 << 1;
	assert_int_equal(create(&r), -EINVAL);
	assert_int_equal(fake.calls, 0);
}

TEST(a_rule_is_destroyed_by_its_number)
{
	struct ib_uverbs_destroy_flow cmd = {.flow_handle = 0x4411};

	assert_int_equal(run_ex(IB_USER_VERBS_EX_CMD_DESTROY_FLOW, &cmd,
				sizeof(cmd), NULL, 0, NULL, 0, 0),
			 0);
	assert_int_equal(fake.req.op, SFNIC_DESTROY_FLOW);
	assert_int_equal(fake.req.id, 0x4411);
	cmd.comp_mask = 1;
	assert_int_equal(run_ex(IB_USER_VERBS_EX_CMD_DESTROY_FLOW, &cmd,
				sizeof(cmd), NULL, 0, NULL, 0, 0),
			 -EINVAL);
}

/* ---- work queues ----------------------------------------------------- */

static const struct ib_uverbs_ex_create_wq wq_cmd = {
	.wq_type = IB_UVERBS_WQT_RQ,
	.user_handle = 0x1234,
	.pd_handle = FAKE_PDN,
	.cq_handle = FAKE_CQN,
	.max_wr = 100,
	.max_sge = 2,
};
static const struct scalefabric_create_wq_req wq_driver = {
	.rq = {.fd = -1},
	.log_depth = 7,
	.log_stride = 6,
};

static int create_wq(const struct ib_uverbs_ex_create_wq *cmd,
		     const struct scalefabric_create_wq_req *driver,
		     struct ib_uverbs_ex_create_wq_resp *core)
{
	struct {
		struct ib_uverbs_ex_create_wq_resp core;
		struct scalefabric_create_wq_resp driver;
	} resp = {};
	int err;

	err = run_ex(IB_USER_VERBS_EX_CMD_CREATE_WQ, cmd, sizeof(*cmd), driver,
		     sizeof(*driver), &resp, sizeof(resp.core),
		     sizeof(resp.driver));
	*core = resp.core;
	if (err)
		return err;
	assert_int_equal(resp.driver.wqn, FAKE_QPN);
	assert_int_equal(resp.driver.rq.mmap_key, 0x5000000);
	assert_int_equal(resp.driver.rq.offset, 0x2040);
	assert_int_equal(resp.driver.doorbell.mmap_key, 0x5010000);
	assert_int_equal(resp.driver.doorbell.offset, 64);
	return 0;
}

TEST(a_work_queue_is_a_queue_pair_that_only_receives)
{
	struct ib_uverbs_ex_create_wq_resp resp;

	fake_expect_qp();
	assert_int_equal(create_wq(&wq_cmd, &wq_driver, &resp), 0);
	assert_int_equal(resp.wq_handle, FAKE_QPN);
	assert_int_equal(resp.wqn, FAKE_QPN);
	assert_int_equal(resp.max_wr, 128);
	assert_int_equal(resp.max_sge, 3);
	assert_int_equal(resp.response_length, sizeof(resp));
	assert_int_equal(fake.req.op, SFNIC_CREATE_QP);
	assert_int_equal(fake.req.qp.type, RNIC_QPT_WQ);
	assert_int_equal(fake.req.qp.pdn, FAKE_PDN);
	assert_int_equal(fake.req.qp.recv_cqn, FAKE_CQN);
	assert_int_equal(fake.req.qp.rq_log_depth, 7);
	assert_int_equal(fake.req.qp.user_handle, 0x1234);
}

TEST(a_work_queue_that_cannot_be_is_refused)
{
	struct ib_uverbs_ex_create_wq cmd = wq_cmd;
	struct scalefabric_create_wq_req driver = wq_driver;
	struct ib_uverbs_ex_create_wq_resp resp;

	cmd.wq_type = 1;
	assert_int_equal(create_wq(&cmd, &driver, &resp), -EINVAL);
	cmd = wq_cmd;
	cmd.create_flags = IB_UVERBS_WQ_FLAGS_SCATTER_FCS;
	assert_int_equal(create_wq(&cmd, &driver, &resp), -EOPNOTSUPP);
	cmd.create_flags = 1 << 9;
	assert_int_equal(create_wq(&cmd, &driver, &resp), -EINVAL);
	cmd = wq_cmd;
	cmd.max_wr = 129;
	assert_int_equal(create_wq(&cmd, &driver, &resp), -EINVAL);
	cmd = wq_cmd;
	cmd.max_sge = 4;
	assert_int_equal(create_wq(&cmd, &driver, &resp), -EINVAL);
	driver.log_stride = SF_RQ_LOG_MAX + 1;
	assert_int_equal(create_wq(&wq_cmd, &driver, &resp), -EINVAL);
	driver = wq_driver;
	driver.reserved[1] = 1;
	assert_int_equal(create_wq(&wq_cmd, &driver, &resp), -EINVAL);
	driver = wq_driver;
	driver.flags = 1;
	assert_int_equal(create_wq(&wq_cmd, &driver, &resp), -EOPNOTSUPP);
	assert_int_equal(fake.calls, 0);
}

static int modify_wq(uint32_t mask, uint32_t from, uint32_t to)
{
	struct ib_uverbs_ex_modify_wq cmd = {
		.attr_mask = mask,
		.wq_handle = FAKE_QPN,
		.wq_state = to,
		.curr_wq_state = from,
	};

	return run_ex(IB_USER_VERBS_EX_CMD_MODIFY_WQ, &cmd, sizeof(cmd), NULL,
		      0, NULL, 0, 0);
}

TEST(a_work_queue_is_modified_by_its_state)
{
	assert_int_equal(modify_wq(1, 0, RNIC_WQ_READY), 0);
	assert_int_equal(fake.req.op, SFNIC_MODIFY_WQ);
	assert_int_equal(fake.req.modify_wq.from, ~0u);
	assert_int_equal(fake.req.modify_wq.to, RNIC_WQ_READY);
	assert_int_equal(modify_wq(3, RNIC_WQ_READY, RNIC_WQ_ERR), 0);
	assert_int_equal(fake.req.modify_wq.from, RNIC_WQ_READY);
	fake.calls = 0;
	assert_int_equal(modify_wq(0, 0, 1), -EINVAL);
	assert_int_equal(modify_wq(8, 0, 1), -EINVAL);
	assert_int_equal(modify_wq(2, 0, 1), -EINVAL);
	assert_int_equal(fake.calls, 0);
}

TEST(a_queue_pair_is_not_destroyed_as_a_work_queue)
{
	struct ib_uverbs_ex_destroy_wq_resp resp = {};
	struct ib_uverbs_ex_destroy_wq cmd = {.wq_handle = FAKE_QPN};

	fake.rsp.query_qp.init.type = RNIC_QPT_RAW_PACKET;
	assert_int_equal(run_ex(IB_USER_VERBS_EX_CMD_DESTROY_WQ, &cmd,
				sizeof(cmd), NULL, 0, &resp, sizeof(resp), 0),
			 -EINVAL);
	fake.rsp.query_qp.init.type = RNIC_QPT_WQ;
	assert_int_equal(run_ex(IB_USER_VERBS_EX_CMD_DESTROY_WQ, &cmd,
				sizeof(cmd), NULL, 0, &resp, sizeof(resp), 0),
			 0);
	assert_int_equal(fake.req.op, SFNIC_DESTROY_QP);
	assert_int_equal(fake.req.id, FAKE_QPN);
}

TEST(a_table_has_as_many_entries_as_it_says)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	uint32_t cmd[2 + 5] = {0, 2, 11, 12, 13, 14, 0};

#define TABLE(words)                                                          \
	run_ex(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, cmd, (words)*4, NULL, \
	       0, &resp, sizeof(resp), 0)
	assert_int_equal(TABLE(6), 0);
	assert_int_equal(fake.req.op, SFNIC_CREATE_WQ_TABLE);
	assert_int_equal(fake.req.wq_table.log_size, 2);
	assert_memory_equal(fake.req.wq_table.wqn, cmd + 2, 16);
	fake.calls = 0;
	assert_int_equal(TABLE(4), -ENOSPC);
	cmd[1] = 1; /* the others are of no entry */
	assert_int_equal(TABLE(6), -EOPNOTSUPP);
	cmd[1] = RNIC_MAX_LOG_WQ_TABLE + 1;
	assert_int_equal(TABLE(6), -EINVAL);
	cmd[1] = ~0u;
	assert_int_equal(TABLE(6), -EINVAL);
	cmd[1] = 2;
	cmd[0] = 1;
	assert_int_equal(TABLE(6), -EOPNOTSUPP);
	assert_int_equal(fake.calls, 0);
}

/* ---- the queue pair that hashes -------------------------------------- */

static int create_hash(const struct ib_uverbs_ex_create_qp *cmd,
		       const struct scalefabric_create_hash_qp_req *driver)
{
	struct ib_uverbs_ex_create_qp_resp resp = {};

	return run_ex(IB_USER_VERBS_EX_CMD_CREATE_QP, cmd, sizeof(*cmd), driver,
		      sizeof(*driver), &resp, sizeof(resp), 0);
}

TEST(a_queue_pair_with_a_table_hashes)
{
	const struct ib_uverbs_ex_create_qp good = {
		.user_handle = 0x77,
		.pd_handle = FAKE_PDN,
		.qp_type = IB_UVERBS_QPT_RAW_PACKET,
		.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
		.rwq_ind_tbl_handle = 21,
	};
	const struct scalefabric_create_hash_qp_req good_driver = {
		.rx_hash_fields = RNIC_HASH_SRC_IPV4,
		.rx_hash_function = SCALEFABRIC_RX_HASH_TOEPLITZ,
		.rx_key_len = 40,
		.rx_key = {1, 2, 3, [39] = 40},
	};
	struct scalefabric_create_hash_qp_req driver = good_driver;
	struct ib_uverbs_ex_create_qp cmd = good;

	assert_int_equal(create_hash(&cmd, &driver), 0);
	assert_int_equal(fake.req.op, SFNIC_CREATE_QP);
	assert_int_equal(fake.req.qp.type, RNIC_QPT_HASH);
	assert_int_equal(fake.req.qp.hash.table, 21);
	assert_int_equal(fake.req.qp.hash.fields, RNIC_HASH_SRC_IPV4);
	assert_memory_equal(fake.req.qp.hash.key, driver.rx_key, 40);
	fake.calls = 0;

	driver.rx_key_len = 39;
	assert_int_equal(create_hash(&cmd, &driver), -EINVAL);
	driver = good_driver;
	driver.reserved[5] = 1;
	assert_int_equal(create_hash(&cmd, &driver), -EINVAL);
	driver = good_driver;
	driver.rx_hash_function = 2;
	assert_int_equal(create_hash(&cmd, &driver), -EOPNOTSUPP);
	driver = good_driver;
	driver.rx_hash_fields = 1ull << 33;
	assert_int_equal(create_hash(&cmd, &driver), -EOPNOTSUPP);
	cmd.qp_type = IB_UVERBS_QPT_RC;
	assert_int_equal(create_hash(&cmd, &good_driver), -EINVAL);
	cmd = good;
	cmd.max_recv_wr = 1;
	assert_int_equal(create_hash(&cmd, &good_driver), -EINVAL);
	cmd = good;
	cmd.max_send_wr = 1;
	assert_int_equal(create_hash(&cmd, &good_driver), -EOPNOTSUPP);
	assert_int_equal(fake.calls, 0);
}

/* ---- what the device says -------------------------------------------- */

TEST(only_ethernet_says_that_it_has_raw_packets)
{
	struct {
		struct ib_uverbs_ex_query_device_resp core;
		struct scalefabric_query_device_resp driver;
	} resp;
	struct ib_uverbs_ex_query_device cmd = {};
	uint32_t raw = IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING;

	memset(&resp, 0xee, sizeof(resp));
	assert_int_equal(run_ex(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &cmd,
				sizeof(cmd), NULL, 0, &resp, sizeof(resp.core),
				sizeof(resp.driver)),
			 0);
	assert_int_equal(resp.core.base.device_cap_flags & raw, 0);
	assert_int_equal(resp.core.raw_packet_caps, 0);
	assert_int_equal(resp.core.rss_caps.supported_qpts, 0);
	assert_int_equal(resp.driver.rx_hash_function, 0);
	fake.port.link_layer = RNIC_ETHERNET;
	assert_int_equal(run_ex(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &cmd,
				sizeof(cmd), NULL, 0, &resp, sizeof(resp.core),
				sizeof(resp.driver)),
			 0);
	assert_int_equal(resp.core.base.device_cap_flags & raw, raw);
	assert_int_equal(resp.core.raw_packet_caps,
			 IB_UVERBS_RAW_PACKET_CAP_IP_CSUM);
	assert_int_equal(resp.core.rss_caps.supported_qpts,
			 1 << IB_UVERBS_QPT_RAW_PACKET);
	assert_int_equal(resp.core.rss_caps.max_rwq_indirection_table_size,
			 1 << RNIC_MAX_LOG_WQ_TABLE);
	assert_int_equal(resp.driver.rx_hash_fields, RNIC_HASH_FIELDS);
}

#define UNIT(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_rule_without_specs_matches_everything),
		UNIT(each_spec_becomes_value_and_mask_of_its_layer),
		UNIT(an_ipv6_spec_has_a_flow_label_of_20_bits),
		UNIT(a_vxlan_spec_has_a_number_of_24_bits),
		UNIT(actions_tag_drop_and_count),
		UNIT(malformed_specs_are_einval_and_reach_nobody),
		UNIT(a_longer_filter_may_say_nothing_new),
		UNIT(a_layer_comes_once),
		UNIT(what_the_attributes_say_must_fit),
		UNIT(a_rule_is_destroyed_by_its_number),
		UNIT(a_work_queue_is_a_queue_pair_that_only_receives),
		UNIT(a_work_queue_that_cannot_be_is_refused),
		UNIT(a_work_queue_is_modified_by_its_state),
		UNIT(a_queue_pair_is_not_destroyed_as_a_work_queue),
		UNIT(a_table_has_as_many_entries_as_it_says),
		UNIT(a_queue_pair_with_a_table_hashes),
		UNIT(only_ethernet_says_that_it_has_raw_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
