// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The uverbs ABI over a backend that records what reaches it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/scalefabric-abi.h>

#include "scalefabric/sf_hw.h"
#include "uverbs_fake.h"

#define USER_HANDLE 0x1122334455667788ull
#define NOWHERE 8ull /* an address where nothing is */

/* ---- commands -------------------------------------------------------- */

struct ioctl_cmd {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[24];
};

static struct ioctl_cmd begin(uint16_t object, uint16_t method)
{
	return (struct ioctl_cmd){
		.hdr.object_id = object,
		.hdr.method_id = method,
	};
}

static struct ib_uverbs_attr *add(struct ioctl_cmd *cmd, uint16_t id,
				  uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &cmd->attr[cmd->hdr.num_attrs++];

	*attr = (struct ib_uverbs_attr){
		.attr_id = id,
		.len = len,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = data,
	};
	cmd->hdr.length = sizeof(cmd->hdr) + cmd->hdr.num_attrs * sizeof(*attr);
	return attr;
}

static struct ib_uverbs_attr *add_ptr(struct ioctl_cmd *cmd, uint16_t id,
				      const void *p, size_t len)
{
	return add(cmd, id, len, (uintptr_t)p);
}

/* As libibverbs does: short input travels in the attribute. */
static struct ib_uverbs_attr *add_in(struct ioctl_cmd *cmd, uint16_t id,
				     const void *p, size_t len)
{
	uint64_t data = 0;

	if (len > sizeof(data))
		return add_ptr(cmd, id, p, len);
	memcpy(&data, p, len);
	return add(cmd, id, len, data);
}

static int run(struct ioctl_cmd *cmd)
{
	return uverbs_ioctl(&fake_ops, FAKE_CTX, FAKE_DEV, cmd);
}

static struct ib_uverbs_attr *find(struct ioctl_cmd *cmd, uint16_t id)
{
	int i;

	for (i = 0; i < cmd->hdr.num_attrs; i++)
		if (cmd->attr[i].attr_id == id)
			return &cmd->attr[i];
	fail_msg("no attribute %u", id);
	return NULL;
}

/* INVOKE_WRITE; lengths may be 0. */
static int invoke(uint64_t number, const void *in, size_t in_len, void *out,
		  size_t out_len, const void *uhw_in, size_t uhw_in_len,
		  void *uhw_out, size_t uhw_out_len)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);

	add(&cmd, UVERBS_ATTR_WRITE_CMD, 8, number);
	if (in_len)
		add_in(&cmd, UVERBS_ATTR_CORE_IN, in, in_len);
	if (out_len)
		add_ptr(&cmd, UVERBS_ATTR_CORE_OUT, out, out_len);
	if (uhw_in_len)
		add_in(&cmd, UVERBS_ATTR_UHW_IN, uhw_in, uhw_in_len);
	if (uhw_out_len)
		add_ptr(&cmd, UVERBS_ATTR_UHW_OUT, uhw_out, uhw_out_len);
	return run(&cmd);
}

#define EXT(command) ((command) | IB_USER_VERBS_CMD_FLAG_EXTENDED)
#define INVOKE(number, in, out) \
	invoke(number, in, sizeof(*(in)), out, sizeof(*(out)), NULL, 0, NULL, 0)

static ssize_t do_write(const void *buf, size_t len)
{
	return uverbs_write(&fake_ops, FAKE_CTX, FAKE_DEV, buf, len);
}

static int setup(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

#define TEST(name) static void name(void **state __attribute__((unused)))

/* ---- the framing of ioctl -------------------------------------------- */

TEST(asked_without_buffers_a_write_command_says_enospc)
{
	assert_int_equal(invoke(IB_USER_VERBS_CMD_QUERY_DEVICE, NULL, 0, NULL,
				0, NULL, 0, NULL, 0),
			 ENOSPC);
}

TEST(unknown_objects_and_methods_are_eprotonosupport)
{
	struct ioctl_cmd cmd = begin(UVERBS_OBJECT_FLOW_ACTION, 0);

	cmd.hdr.length = sizeof(cmd.hdr);
	assert_int_equal(run(&cmd), EPROTONOSUPPORT);
	cmd.hdr.object_id = UVERBS_OBJECT_PD;
	cmd.hdr.method_id = 9;
	assert_int_equal(run(&cmd), EPROTONOSUPPORT);
	cmd.hdr.object_id = 0x1000; /* a driver's */
	assert_int_equal(run(&cmd), EPROTONOSUPPORT);
}

static struct ioctl_cmd destroy_pd_cmd(void)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);

	add(&cmd, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, FAKE_PDN);
	return cmd;
}

TEST(unknown_attribute_matters_if_it_is_mandatory)
{
	struct ioctl_cmd cmd = destroy_pd_cmd();
	struct ib_uverbs_attr *attr = add(&cmd, 0x2007, 0, 0);

	assert_int_equal(run(&cmd), EPROTONOSUPPORT);
	assert_int_equal(fake.calls, 0);
	attr->flags = 0;
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(fake.req.op, SFNIC_DEALLOC_PD);
	assert_int_equal(fake.req.id, FAKE_PDN);
	assert_int_equal(fake.req.ctx, FAKE_CTX);
}

TEST(duplicated_attribute_is_einval)
{
	struct ioctl_cmd cmd = destroy_pd_cmd();

	add(&cmd, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, FAKE_PDN);
	assert_int_equal(run(&cmd), EINVAL);
}

TEST(missing_attribute_is_einval)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);

	cmd.hdr.length = sizeof(cmd.hdr);
	assert_int_equal(run(&cmd), EINVAL);
}

TEST(list_whose_length_and_count_differ_is_einval)
{
	struct ioctl_cmd cmd = destroy_pd_cmd();

	cmd.hdr.length--;
	assert_int_equal(run(&cmd), EINVAL);
	cmd.hdr.num_attrs = 4000;
	cmd.hdr.length = (uint16_t)(sizeof(cmd.hdr) + 4000 * 16);
	assert_int_equal(run(&cmd), EINVAL);
}

TEST(reserved_fields_of_the_header_are_for_a_later_protocol)
{
	struct ioctl_cmd cmd = destroy_pd_cmd();

	cmd.hdr.reserved1 = 1;
	assert_int_equal(run(&cmd), EPROTONOSUPPORT);
	cmd.hdr.reserved1 = 0;
	cmd.hdr.reserved2 = 1;
	assert_int_equal(run(&cmd), EPROTONOSUPPORT);
	cmd.hdr.reserved2 = 0;
	cmd.hdr.driver_id = RDMA_DRIVER_MLX5;
	assert_int_equal(run(&cmd), EINVAL);
}

TEST(attribute_of_wrong_length_or_with_reserved_bits_is_einval)
{
	struct ioctl_cmd cmd = destroy_pd_cmd();

	cmd.attr[0].len = 4;
	assert_int_equal(run(&cmd), EINVAL);
	cmd.attr[0].len = 0;
	cmd.attr[0].attr_data.reserved = 1;
	assert_int_equal(run(&cmd), EINVAL);
	cmd.attr[0].attr_data.reserved = 0;
	cmd.attr[0].data = 1ull << 32;
	assert_int_equal(run(&cmd), EINVAL);
	assert_int_equal(fake.calls, 0);
}

TEST(command_at_a_bad_address_is_efault)
{
	assert_int_equal(uverbs_ioctl(&fake_ops, FAKE_CTX, FAKE_DEV,
				      (void *)(uintptr_t)NOWHERE),
			 EFAULT);
	assert_int_equal(do_write((void *)(uintptr_t)NOWHERE, 24), -EFAULT);
}

TEST(list_that_runs_off_its_page_is_efault)
{
	char *page = mmap(NULL, 2 * RNIC_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ioctl_cmd cmd = destroy_pd_cmd();
	char *at = page + RNIC_PAGE - sizeof(cmd.hdr) - 8;

	memcpy(at, &cmd, sizeof(cmd.hdr) + 16);
	assert_int_equal(mprotect(page + RNIC_PAGE, RNIC_PAGE, PROT_NONE), 0);
	assert_int_equal(uverbs_ioctl(&fake_ops, FAKE_CTX, FAKE_DEV, at),
			 EFAULT);
	munmap(page, 2 * RNIC_PAGE);
}

/* ---- context, device, port ------------------------------------------- */

TEST(context_says_how_to_ring_and_what_fits)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	struct scalefabric_alloc_ucontext_resp resp;
	struct scalefabric_alloc_ucontext_req req = {};
	uint64_t support = 0;
	uint32_t vectors = 0;

	add_ptr(&cmd, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, 4);
	add_ptr(&cmd, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, 8);
	add_in(&cmd, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	add_ptr(&cmd, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	assert_int_equal(run(&cmd), 0);

	assert_true(vectors > 0);
	assert_int_equal(support, IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
	assert_int_equal(resp.comp_mask, 0);
	assert_int_equal(resp.hw_version, SF_HW_VERSION);
	assert_int_equal(resp.sq_doorbell, SCALEFABRIC_DOORBELL_NOTIFY);
	assert_int_equal(resp.rq_doorbell, SCALEFABRIC_DOORBELL_NOTIFY);
	assert_int_equal(resp.srq_doorbell, SCALEFABRIC_DOORBELL_NOTIFY);
	assert_int_equal(resp.cq_doorbell, SCALEFABRIC_DOORBELL_NOTIFY);
	assert_int_equal(resp.max_send_sge, SF_MAX_SEND_SGE);
	assert_int_equal(resp.max_inline, SF_MAX_INLINE);
	assert_int_equal(resp.max_log_depth, SF_MAX_LOG_DEPTH);
	assert_int_equal(resp.max_cq_log_depth, SF_MAX_CQ_LOG_DEPTH);
	assert_true(find(&cmd, UVERBS_ATTR_UHW_OUT)->flags &
		    UVERBS_ATTR_F_VALID_OUTPUT);
	assert_false(find(&cmd, UVERBS_ATTR_UHW_IN)->flags &
		     UVERBS_ATTR_F_VALID_OUTPUT);
}

static int get_context(const void *in, size_t in_len, void *out, size_t out_len)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);

	add_in(&cmd, UVERBS_ATTR_UHW_IN, in, in_len);
	add_ptr(&cmd, UVERBS_ATTR_UHW_OUT, out, out_len);
	return run(&cmd);
}

TEST(driver_part_may_grow_by_zeroes_only)
{
	uint64_t req[4] = {}, resp[8] = {};

	assert_int_equal(get_context(req, 4, resp, sizeof(resp)), EINVAL);
	assert_int_equal(get_context(req, 32, resp, sizeof(resp)), 0);
	req[3] = 1;
	assert_int_equal(get_context(req, 32, resp, sizeof(resp)), EOPNOTSUPP);
	req[3] = 0;
	req[0] = 1; /* comp_mask */
	assert_int_equal(get_context(req, 8, resp, sizeof(resp)), EOPNOTSUPP);
}

TEST(answer_is_cut_or_filled_up_to_the_room_of_the_caller)
{
	uint8_t room[80];
	uint64_t req = 0;

	memset(room, 0xee, sizeof(room));
	assert_int_equal(get_context(&req, 8, room, 12), 0);
	assert_int_equal(room[8], SF_HW_VERSION);
	assert_int_equal(room[12], 0xee);
	assert_int_equal(get_context(&req, 8, room, 64), 0);
	assert_int_equal(room[63], 0);
	assert_int_equal(room[64], 0xee);
}

TEST(async_events_come_through_a_file_descriptor)
{
	struct ioctl_cmd cmd = begin(UVERBS_OBJECT_ASYNC_EVENT,
				     UVERBS_METHOD_ASYNC_EVENT_ALLOC);

	add(&cmd, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, 0);
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(cmd.attr[0].data_s64, FAKE_ASYNC_FD);
}

TEST(device_says_what_it_is_and_keeps)
{
	struct ib_uverbs_ex_query_device_resp resp;
	struct ib_uverbs_ex_query_device req = {};

	memset(&resp, 0xee, sizeof(resp));
	assert_int_equal(
		INVOKE(EXT(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), &req, &resp), 0);
	assert_int_equal(resp.response_length, sizeof(resp));
	assert_int_equal(resp.base.vendor_id, 0x1cb8);
	assert_int_equal(resp.base.vendor_part_id, 0x5f01);
	assert_int_equal(resp.base.fw_ver, 1 << 16); /* 0.1.0 */
	assert_int_equal(be64toh(resp.base.node_guid), 0x0201020304050607);
	assert_int_equal(be64toh(resp.base.sys_image_guid), 0x0201020304050600);
	assert_int_equal(resp.base.phys_port_cnt, RNIC_MAX_PORTS);
	assert_int_equal(resp.base.max_qp, RNIC_MAX_QP);
	assert_int_equal(resp.base.max_qp_wr, 1 << SF_MAX_LOG_DEPTH);
	assert_int_equal(resp.base.max_cqe, 1 << SF_MAX_CQ_LOG_DEPTH);
	assert_int_equal(resp.base.max_sge, SF_MAX_SEND_SGE);
	assert_int_equal(resp.base.max_qp_rd_atom, RNIC_MAX_RD_ATOMIC);
	assert_int_equal(resp.base.atomic_cap, 1);
	assert_int_equal(resp.base.max_pkeys, 1);
	assert_int_equal(resp.base.max_srq, RNIC_MAX_SRQ - 1);
	assert_int_equal(resp.base.max_srq_wr, 1 << SF_MAX_LOG_DEPTH);
	assert_int_equal(resp.base.max_srq_sge, SF_MAX_RECV_SGE);
	assert_int_equal(resp.base.max_mw, RNIC_MAX_MW - 1);
	assert_int_equal(resp.max_dm_size, RNIC_MAX_DM_SIZE);
	assert_int_equal(resp.base.max_ah, RNIC_MAX_AH - 1);
	assert_int_equal(resp.base.max_mcast_qp_attach, RNIC_MAX_MCAST);
	assert_int_equal(resp.odp_caps.general_caps, 3);
	assert_int_equal(resp.odp_caps.per_transport_caps.rc_odp_caps, 0x3f);
	assert_int_equal(resp.odp_caps.per_transport_caps.uc_odp_caps, 0x27);
	assert_int_equal(resp.odp_caps.per_transport_caps.ud_odp_caps, 0x23);
	assert_int_equal(resp.rss_caps.supported_qpts, 0);
	assert_int_equal(resp.timestamp_mask, ~0ull);
	assert_int_equal(resp.hca_core_clock, 1000000);
	req.comp_mask = 1;
	assert_int_equal(INVOKE(EXT(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), &req,
				&resp),
			 EINVAL);
}

static int query_port(uint64_t port, struct ib_uverbs_query_port_resp_ex *resp)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);

	add(&cmd, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, port);
	add_ptr(&cmd, UVERBS_ATTR_QUERY_PORT_RESP, resp, sizeof(*resp));
	return run(&cmd);
}

TEST(port_is_what_the_backend_says)
{
	struct ib_uverbs_query_port_resp_ex resp;

	assert_int_equal(query_port(1, &resp), 0);
	assert_int_equal(resp.legacy_resp.state, 4);
	assert_int_equal(resp.legacy_resp.phys_state, 5);
	assert_int_equal(resp.legacy_resp.lid, 3);
	assert_int_equal(resp.legacy_resp.active_mtu, RNIC_MTU_1024);
	assert_int_equal(resp.legacy_resp.max_mtu, RNIC_MTU_4096);
	assert_int_equal(resp.legacy_resp.gid_tbl_len, RNIC_MAX_GIDS);
	assert_int_equal(resp.legacy_resp.max_msg_sz, SF_MAX_MSG);
	assert_int_equal(resp.legacy_resp.link_layer, RNIC_INFINIBAND);
	assert_int_equal(resp.legacy_resp.flags, 0);
	assert_int_equal(query_port(0, &resp), EINVAL);
	assert_int_equal(query_port(RNIC_MAX_PORTS + 1, &resp), EINVAL);
	assert_int_equal(query_port((1ull << 32) + 1, &resp), EINVAL);

	fake.port.link_layer = RNIC_ETHERNET;
	assert_int_equal(query_port(1, &resp), 0);
	assert_int_equal(resp.legacy_resp.flags, IB_UVERBS_QPF_GRH_REQUIRED);
}

static int query_gid(uint64_t port, uint64_t index,
		     struct ib_uverbs_gid_entry *entry)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);

	add(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 8, port);
	add(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 8, index);
	add(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 0);
	add_ptr(&cmd, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry,
		sizeof(*entry));
	return run(&cmd);
}

TEST(gid_is_there_or_enodata_or_outside_of_the_table)
{
	struct ib_uverbs_gid_entry entry;

	assert_int_equal(query_gid(2, 2, &entry), 0);
	assert_memory_equal(entry.gid, fake.port.gid[2], 16);
	assert_int_equal(entry.gid_index, 2);
	assert_int_equal(entry.port_num, 2);
	assert_int_equal(entry.gid_type, IB_UVERBS_GID_TYPE_IB);
	assert_int_equal(query_gid(1, 1, &entry), ENODATA);
	assert_int_equal(query_gid(1, RNIC_MAX_GIDS - 1, &entry), ENODATA);
	assert_int_equal(query_gid(1, RNIC_MAX_GIDS, &entry), EINVAL);
	assert_int_equal(query_gid(9, 0, &entry), EINVAL);
}

TEST(gid_table_lists_what_is_there_at_the_callers_stride)
{
	struct {
		struct ib_uverbs_gid_entry entry;
		uint64_t newer;
	} table[8];
	uint64_t size = sizeof(table[0]), count = 0;
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);

	memset(table, 0xee, sizeof(table));
	add(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, size);
	add(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, 0);
	add_ptr(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table,
		sizeof(table));
	add_ptr(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &count, 8);
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(count, 4); /* two on each port */
	assert_int_equal(table[3].entry.port_num, 2);
	assert_int_equal(table[3].entry.gid_index, 2);
	assert_int_equal(table[3].newer, 0);

	find(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES)->len = 3 * size;
	assert_int_equal(run(&cmd), EINVAL); /* no room */
	find(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES)->len = size + 1;
	assert_int_equal(run(&cmd), EINVAL);
	find(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE)->data = 0;
	assert_int_equal(run(&cmd), EINVAL);
}

/* ---- protection domains, memory regions ------------------------------ */

TEST(pd_number_is_its_handle)
{
	struct scalefabric_alloc_pd_resp driver = {};
	struct ib_uverbs_alloc_pd_resp resp = {};
	struct ib_uverbs_alloc_pd req = {};

	assert_int_equal(invoke(IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req),
				&resp, sizeof(resp), NULL, 0, &driver,
				sizeof(driver)),
			 0);
	assert_int_equal(resp.pd_handle, FAKE_PDN);
	assert_int_equal(driver.pdn, FAKE_PDN);
}

TEST(answer_that_cannot_be_written_leaves_no_object)
{
	struct ib_uverbs_create_comp_channel_resp *nowhere = (void *)NOWHERE;
	struct ib_uverbs_alloc_pd req = {};
	struct ib_uverbs_alloc_pd_resp resp;

	assert_int_equal(invoke(IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req),
				&resp, sizeof(resp), NULL, 0, nowhere, 8),
			 EFAULT);
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &req,
				nowhere),
			 EFAULT);
	assert_int_equal(fake.pds, 0);
	assert_int_equal(fake.fds, 0);
}

static int reg_mr(uint64_t start, uint64_t length, uint64_t iova,
		  uint32_t access)
{
	struct ib_uverbs_reg_mr req = {
		.start = start,
		.length = length,
		.hca_va = iova,
		.pd_handle = FAKE_PDN,
		.access_flags = access,
	};
	struct ib_uverbs_reg_mr_resp resp = {};
	int err = invoke(IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req), &resp, 12,
			 NULL, 0, NULL, 0);

	if (!err) {
		assert_int_equal(resp.mr_handle, FAKE_KEY);
		assert_int_equal(resp.lkey, FAKE_KEY);
		assert_int_equal(resp.rkey, FAKE_KEY);
	}
	return err;
}

TEST(memory_region_reaches_the_backend_as_asked)
{
	assert_int_equal(reg_mr(0x1010, 100, 0x7010, 0xf), 0);
	assert_int_equal(fake.mr.addr, 0x1010);
	assert_int_equal(fake.mr.len, 100);
	assert_int_equal(fake.mr.iova, 0x7010);
	assert_int_equal(fake.mr.access, 0xf);
	assert_int_equal(fake.mr.pdn, FAKE_PDN);
}

TEST(address_and_iova_lie_at_the_same_place_in_a_page)
{
	assert_int_equal(reg_mr(0x1010, 100, 0x7011, 0), EINVAL);
	assert_int_equal(reg_mr(0x1000, 0, 0x1000, 0), EINVAL);
	assert_int_equal(reg_mr(0x1000, ~0ull, 0x1000, 0), EINVAL);
}

TEST(access_flags_are_rights_or_hints)
{
	const uint32_t write = IB_UVERBS_ACCESS_LOCAL_WRITE;

	assert_int_equal(reg_mr(0, 9, 0, IB_UVERBS_ACCESS_REMOTE_WRITE),
			 EINVAL);
	assert_int_equal(reg_mr(0, 9, 0, IB_UVERBS_ACCESS_REMOTE_ATOMIC),
			 EINVAL);
	assert_int_equal(reg_mr(0, 9, 0, 1 << 8), EINVAL);
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(
		reg_mr(0, 9, 0, write | IB_UVERBS_ACCESS_RELAXED_ORDERING), 0);
	assert_int_equal(fake.mr.access, write);
	assert_int_equal(reg_mr(0x1010, 9, 0x1010, IB_UVERBS_ACCESS_ZERO_BASED),
			 0);
	assert_int_equal(fake.mr.iova, 0);
	assert_int_equal(fake.mr.access, RNIC_ZERO_BASED);
	assert_int_equal(reg_mr(0, 9, 0,
				IB_UVERBS_ACCESS_MW_BIND |
					IB_UVERBS_ACCESS_ON_DEMAND |
					IB_UVERBS_ACCESS_HUGETLB),
			 0);
	assert_int_equal(fake.mr.access, RNIC_MW_BIND | RNIC_ON_DEMAND);
}

TEST(the_whole_address_space_is_registered_on_demand_only)
{
	assert_int_equal(reg_mr(0, ~0ull, 0, 0), EFAULT);
	assert_int_equal(reg_mr(0, ~0ull, 0,
				IB_UVERBS_ACCESS_ON_DEMAND |
					IB_UVERBS_ACCESS_HUGETLB),
			 EINVAL);
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(reg_mr(0, ~0ull, 0, IB_UVERBS_ACCESS_ON_DEMAND), 0);
	assert_true(fake.mr.len == ~0ull);
}

static int reg_null(struct ib_uverbs_reg_mr req,
		    struct scalefabric_reg_mr_req driver, uint32_t *rkey)
{
	struct ib_uverbs_reg_mr_resp resp = {.rkey = 1};
	int err = invoke(IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req), &resp, 12,
			 &driver, sizeof(driver), NULL, 0);

	*rkey = resp.rkey;
	return err;
}

TEST(a_null_region_is_everywhere_and_nobodys_target)
{
	struct scalefabric_reg_mr_req driver = {.flags = SCALEFABRIC_MR_NULL};
	struct ib_uverbs_reg_mr req = {
		.pd_handle = FAKE_PDN,
		.access_flags = IB_UVERBS_ACCESS_LOCAL_WRITE,
	};
	uint32_t rkey;

	assert_int_equal(reg_null(req, driver, &rkey), 0);
	assert_int_equal(rkey, 0);
	assert_int_equal(fake.mr.space, RNIC_SPACE_NULL);
	assert_true(fake.mr.len == ~0ull);
	req.access_flags |= IB_UVERBS_ACCESS_REMOTE_WRITE;
	assert_int_equal(reg_null(req, driver, &rkey), EINVAL);
	req.access_flags = IB_UVERBS_ACCESS_LOCAL_WRITE;
	req.length = 4096;
	assert_int_equal(reg_null(req, driver, &rkey), EINVAL);
	req.length = 0;
	driver.reserved = 1;
	assert_int_equal(reg_null(req, driver, &rkey), EINVAL);
	driver.reserved = 0;
	driver.flags |= 2;
	assert_int_equal(reg_null(req, driver, &rkey), EOPNOTSUPP);
	driver.flags = SCALEFABRIC_MR_NULL;
	driver.comp_mask = 1;
	assert_int_equal(reg_null(req, driver, &rkey), EOPNOTSUPP);
	assert_int_equal(fake.mrs, 1);
}

static int rereg_mr(uint32_t flags, uint64_t start, uint64_t hca_va,
		    uint32_t access)
{
	struct ib_uverbs_rereg_mr req = {
		.mr_handle = FAKE_KEY,
		.flags = flags,
		.start = start,
		.length = 64,
		.hca_va = hca_va,
		.pd_handle = FAKE_PDN,
		.access_flags = access,
	};
	struct ib_uverbs_rereg_mr_resp resp = {};
	int err = INVOKE(IB_USER_VERBS_CMD_REREG_MR, &req, &resp);

	if (!err) {
		assert_int_equal(resp.lkey, FAKE_KEY);
		assert_int_equal(resp.rkey, FAKE_KEY);
	}
	return err;
}

TEST(reregistration_says_what_changes)
{
	assert_int_equal(rereg_mr(0, 0, 0, 0), EINVAL);
	assert_int_equal(rereg_mr(8, 0, 0, 0), EOPNOTSUPP);
	assert_int_equal(rereg_mr(RNIC_MR_TRANSLATION, 1, 2, 0), EINVAL);
	assert_int_equal(rereg_mr(RNIC_MR_ACCESS, 0, 0, 2), EINVAL);
	assert_int_equal(fake.mask, 0);
	assert_int_equal(rereg_mr(7, 0x2000, 0x2000, 7), 0);
	assert_int_equal(fake.mask, 7);
	assert_int_equal(fake.mr.addr, 0x2000);
	assert_int_equal(fake.mr.len, 64);
	assert_int_equal(fake.mr.access, 7);
	assert_int_equal(fake.mr.pdn, FAKE_PDN);
}

TEST(a_region_can_be_asked_for_by_its_number)
{
	struct ioctl_cmd cmd = begin(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	uint32_t lkey = 0, rkey = 0;
	uint64_t length = 0;

	add(&cmd, UVERBS_ATTR_QUERY_MR_HANDLE, 0, FAKE_KEY);
	add_ptr(&cmd, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &lkey, 4);
	add_ptr(&cmd, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, 4);
	add_ptr(&cmd, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, 8);
	fake.mr.len = 77;
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(lkey, FAKE_KEY);
	assert_int_equal(rkey, FAKE_KEY);
	assert_int_equal(length, 77);
	cmd.attr[0].data++;
	assert_int_equal(run(&cmd), EINVAL);
}

static int advise(uint64_t advice, uint32_t flags, struct ib_uverbs_sge *sge,
		  size_t len)
{
	struct ioctl_cmd cmd = begin(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);

	add(&cmd, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, 0, FAKE_PDN);
	add(&cmd, UVERBS_ATTR_ADVISE_MR_ADVICE, 8, advice);
	add(&cmd, UVERBS_ATTR_ADVISE_MR_FLAGS, 4, flags);
	add_ptr(&cmd, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, len);
	return run(&cmd);
}

TEST(advice_is_about_regions_on_demand)
{
	struct ib_uverbs_sge sge[2] = {{0x7010, 16, FAKE_KEY},
				       {0x7000, 16, FAKE_KEY}};

	fake.mr = (struct rnic_mr_attr){.addr = 0x1000,
					.len = 32,
					.iova = 0x7000,
					.pdn = FAKE_PDN,
					.access = RNIC_ON_DEMAND};
	assert_int_equal(advise(0, 0, sge, sizeof(sge)), 0);
	assert_int_equal(fake.prefetched, 2);
	assert_int_equal(fake.prefetch_addr, 0x1000);
	assert_int_equal(advise(2, 1, sge, sizeof(sge)), 0);
	assert_int_equal(fake.prefetched, 2); /* nothing is faulted in */
	assert_int_equal(advise(1, 0, sge, sizeof(sge)), EPERM);
	fake.mr.access |= RNIC_LOCAL_WRITE;
	assert_int_equal(advise(1, 0, sge, sizeof(sge[0])), 0);
	assert_true(fake.prefetch_write);
	assert_int_equal(advise(3, 0, sge, sizeof(sge)), EOPNOTSUPP);
	assert_int_equal(advise(0, 2, sge, sizeof(sge)), EINVAL);
	assert_int_equal(advise(0, 0, sge, 17), EINVAL);
	assert_int_equal(advise(0, 0, sge, 0), EINVAL);
	sge[0].length = 17;
	assert_int_equal(advise(0, 0, sge, sizeof(sge)), EFAULT);
	sge[0].length = 16;
	fake.mr.pdn++;
	assert_int_equal(advise(0, 0, sge, sizeof(sge)), EPERM);
	fake.mr.pdn--;
	sge[1].lkey++;
	assert_int_equal(advise(0, 0, sge, sizeof(sge)), ENOENT);
	fake.mr.access = 0;
	assert_int_equal(advise(0, 0, sge, sizeof(sge)), EINVAL);
}

static int reg_dmabuf(uint64_t offset, uint64_t iova, int fd, uint32_t access)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	uint32_t lkey = 0, rkey = 0;
	int err;

	add(&cmd, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0);
	add(&cmd, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, FAKE_PDN);
	add(&cmd, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, offset);
	add(&cmd, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, 100);
	add(&cmd, UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, iova);
	add(&cmd, UVERBS_ATTR_REG_DMABUF_MR_FD, 4, (uint32_t)fd);
	add(&cmd, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, access);
	add_ptr(&cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &lkey, 4);
	add_ptr(&cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &rkey, 4);
	err = run(&cmd);
	if (!err) {
		assert_int_equal(cmd.attr[0].data, FAKE_KEY);
		assert_int_equal(lkey, FAKE_KEY);
		assert_int_equal(rkey, FAKE_KEY);
	}
	return err;
}

TEST(a_dmabuf_is_registered_by_descriptor_and_offset)
{
	assert_int_equal(reg_dmabuf(0x1010, 0x7011, 5, 1), EINVAL);
	assert_int_equal(reg_dmabuf(0, 0, 5, IB_UVERBS_ACCESS_ON_DEMAND),
			 EINVAL);
	assert_int_equal(reg_dmabuf(0, 0, 5, IB_UVERBS_ACCESS_REMOTE_WRITE),
			 EINVAL);
	assert_int_equal(reg_dmabuf(0, 0, -1, 1), EBADF);
	assert_int_equal(reg_dmabuf(0, 0, 6, 1), EBADF);
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(reg_dmabuf(0x1010, 0x7010, 5, 1), 0);
	assert_int_equal(fake.mr.addr, 0x1010);
	assert_int_equal(fake.mr.len, 100);
	assert_int_equal(fake.mr.iova, 0x7010);
	assert_int_equal(fake.mr.access, RNIC_LOCAL_WRITE);
}

/* ---- windows --------------------------------------------------------- */

TEST(a_window_goes_by_its_first_key)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY);
	struct ib_uverbs_alloc_mw req = {.pd_handle = FAKE_PDN, .mw_type = 2};
	struct ib_uverbs_dealloc_mw dealloc = {FAKE_KEY};
	struct ib_uverbs_alloc_mw_resp resp = {};

	assert_int_equal(invoke(IB_USER_VERBS_CMD_ALLOC_MW, &req, sizeof(req),
				&resp, 8, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(resp.mw_handle, FAKE_KEY);
	assert_int_equal(resp.rkey, FAKE_KEY);
	assert_int_equal(fake.req.alloc_mw.pdn, FAKE_PDN);
	assert_int_equal(fake.req.alloc_mw.type, 2);
	add(&cmd, UVERBS_ATTR_DESTROY_MW_HANDLE, 0, FAKE_KEY);
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(fake.req.op, SFNIC_DEALLOC_MW);
	assert_int_equal(fake.req.id, FAKE_KEY);
	assert_int_equal(invoke(IB_USER_VERBS_CMD_DEALLOC_MW, &dealloc,
				sizeof(dealloc), NULL, 0, NULL, 0, NULL, 0),
			 0);
}

/* ---- device memory --------------------------------------------------- */

static struct ioctl_cmd alloc_dm_cmd(uint64_t length, uint32_t align)
{
	struct ioctl_cmd cmd = begin(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);

	add(&cmd, UVERBS_ATTR_ALLOC_DM_HANDLE, 0, 0);
	add(&cmd, UVERBS_ATTR_ALLOC_DM_LENGTH, 8, length);
	add(&cmd, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, align);
	return cmd;
}

TEST(device_memory_is_limited_and_aligned_to_its_pages)
{
	struct ioctl_cmd cmd = alloc_dm_cmd(RNIC_MAX_DM_SIZE, 12);

	assert_int_equal(run(&cmd), 0);
	assert_int_equal(cmd.attr[0].data, FAKE_DM);
	assert_int_equal(fake.req.alloc_dm.len, RNIC_MAX_DM_SIZE);
	cmd = alloc_dm_cmd(RNIC_MAX_DM_SIZE + 1ull, 0);
	assert_int_equal(run(&cmd), ENOMEM);
	cmd = alloc_dm_cmd(0, 0);
	assert_int_equal(run(&cmd), EINVAL);
	cmd = alloc_dm_cmd(4, 13);
	assert_int_equal(run(&cmd), EINVAL);
	assert_int_equal(fake.calls, 1);
	cmd = begin(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE);
	add(&cmd, UVERBS_ATTR_FREE_DM_HANDLE, 0, FAKE_DM);
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(fake.req.op, SFNIC_FREE_DM);
	assert_int_equal(fake.req.id, FAKE_DM);
}

TEST(who_imports_asks_what_there_is)
{
	struct scalefabric_query_dm_resp dm = {};
	struct scalefabric_alloc_pd_resp pd = {};
	struct ioctl_cmd cmd = begin(UVERBS_OBJECT_DM, SCALEFABRIC_DM_QUERY);

	add(&cmd, SCALEFABRIC_QUERY_HANDLE, 0, FAKE_DM);
	add_ptr(&cmd, SCALEFABRIC_QUERY_RESP, &dm, sizeof(dm));
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(dm.region.mmap_key, 0x7000000);
	assert_int_equal(dm.region.length, 2 * RNIC_PAGE);
	assert_int_equal(dm.region.offset, 0);
	assert_int_equal(dm.length, RNIC_PAGE + 4);
	cmd.attr[0].data++;
	assert_int_equal(run(&cmd), EINVAL);
	cmd = begin(UVERBS_OBJECT_PD, SCALEFABRIC_PD_QUERY);
	add(&cmd, SCALEFABRIC_QUERY_HANDLE, 0, FAKE_PDN);
	add_ptr(&cmd, SCALEFABRIC_QUERY_RESP, &pd, sizeof(pd));
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(pd.pdn, FAKE_PDN);
	cmd.attr[0].data++;
	assert_int_equal(run(&cmd), EINVAL);
}

static int reg_dm_mr(uint32_t access, uint32_t dm)
{
	struct ioctl_cmd cmd = begin(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
	uint32_t lkey = 0, rkey = 0;
	int err;

	add(&cmd, UVERBS_ATTR_REG_DM_MR_HANDLE, 0, 0);
	add(&cmd, UVERBS_ATTR_REG_DM_MR_OFFSET, 8, 8);
	add(&cmd, UVERBS_ATTR_REG_DM_MR_LENGTH, 8, 16);
	add(&cmd, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, 0, FAKE_PDN);
	add(&cmd, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, 4, access);
	add(&cmd, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, 0, dm);
	add_ptr(&cmd, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &lkey, 4);
	add_ptr(&cmd, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &rkey, 4);
	err = run(&cmd);
	if (!err) {
		assert_int_equal(cmd.attr[0].data, FAKE_KEY);
		assert_int_equal(lkey, FAKE_KEY);
		assert_int_equal(rkey, FAKE_KEY);
	}
	return err;
}

TEST(a_region_of_device_memory_is_zero_based)
{
	const uint32_t zero = IB_UVERBS_ACCESS_ZERO_BASED;

	assert_int_equal(reg_dm_mr(1, FAKE_DM), EINVAL);
	assert_int_equal(reg_dm_mr(zero, 0), EINVAL);
	assert_int_equal(reg_dm_mr(zero | IB_UVERBS_ACCESS_ON_DEMAND, FAKE_DM),
			 EINVAL);
	assert_int_equal(reg_dm_mr(zero | IB_UVERBS_ACCESS_REMOTE_WRITE,
				   FAKE_DM),
			 EINVAL);
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(reg_dm_mr(zero | 1, FAKE_DM), 0);
	assert_int_equal(fake.mr.dm, FAKE_DM);
	assert_int_equal(fake.mr.addr, 8);
	assert_int_equal(fake.mr.len, 16);
	assert_int_equal(fake.mr.iova, 0);
}

TEST(memory_region_goes_by_its_key)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY);
	struct ib_uverbs_dereg_mr req = {FAKE_KEY};

	add(&cmd, UVERBS_ATTR_DESTROY_MR_HANDLE, 0, FAKE_KEY);
	assert_int_equal(run(&cmd), 0);
	cmd.attr[0].data++;
	assert_int_equal(run(&cmd), EINVAL);
	assert_int_equal(invoke(IB_USER_VERBS_CMD_DEREG_MR, &req, sizeof(req),
				NULL, 0, NULL, 0, NULL, 0),
			 0);
}

/* ---- completion queues ----------------------------------------------- */

struct create_cq {
	struct ioctl_cmd cmd;
	struct scalefabric_create_cq_req req;
	struct scalefabric_create_cq_resp resp;
	uint32_t cqe;
};

static void fill_create_cq(struct create_cq *t)
{
	memset(t, 0, sizeof(*t));
	t->req.ring.fd = t->req.ctrl.fd = -1;
	t->req.log_depth = 8;
	t->cmd = begin(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	add(&t->cmd, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	add(&t->cmd, UVERBS_ATTR_CREATE_CQ_CQE, 4, 200);
	add(&t->cmd, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, USER_HANDLE);
	add(&t->cmd, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0, FAKE_CHANNEL_FD);
	add(&t->cmd, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0);
	add(&t->cmd, UVERBS_ATTR_CREATE_CQ_FLAGS, 4, 0);
	add(&t->cmd, UVERBS_ATTR_CREATE_CQ_EVENT_FD, 0, FAKE_ASYNC_FD)->flags =
		0;
	add_ptr(&t->cmd, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &t->cqe, 4);
	add_ptr(&t->cmd, UVERBS_ATTR_UHW_IN, &t->req, sizeof(t->req));
	add_ptr(&t->cmd, UVERBS_ATTR_UHW_OUT, &t->resp, sizeof(t->resp));
}

static void set(struct create_cq *t, uint16_t id, uint64_t value)
{
	find(&t->cmd, id)->data = value;
}

TEST(cq_number_is_its_handle_and_its_memory_is_named)
{
	struct create_cq t;

	fill_create_cq(&t);
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(find(&t.cmd, UVERBS_ATTR_CREATE_CQ_HANDLE)->data,
			 FAKE_CQN);
	assert_int_equal(t.cqe, 256);
	assert_int_equal(t.resp.cqn, FAKE_CQN);
	assert_int_equal(t.resp.start, 256);
	assert_int_equal(t.resp.ring.mmap_key, 0x4000000);
	assert_int_equal(t.resp.ring.length, 0x4000);
	assert_int_equal(t.resp.ring.offset, 0);
	assert_int_equal(t.resp.ctrl.mmap_key, 0x4010000);
	assert_int_equal(t.resp.ctrl.length, RNIC_PAGE);
	assert_int_equal(t.resp.ctrl.offset, 0);
	assert_int_equal(t.resp.doorbell.mmap_key, 0x4010000);
	assert_int_equal(t.resp.doorbell.offset, 64);
	assert_int_equal(fake.req.cq.log_depth, 8);
	assert_int_equal(fake.req.cq.channel, FAKE_CHANNEL);
	assert_int_equal(fake.req.cq.timestamps, 0);
	assert_int_equal(fake.req.cq.user_handle, USER_HANDLE);
}

TEST(cq_timestamps_can_be_asked_for_in_two_ways)
{
	struct create_cq t;

	fill_create_cq(&t);
	set(&t, UVERBS_ATTR_CREATE_CQ_FLAGS,
	    IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION);
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(fake.req.cq.timestamps, 1);
	fill_create_cq(&t);
	t.req.flags = SCALEFABRIC_CQ_TIMESTAMP;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(fake.req.cq.timestamps, 1);
}

TEST(cq_that_cannot_be_is_refused_before_it_exists)
{
	static const struct {
		uint16_t attr;
		uint64_t value;
		int err;
	} bad[] = {
		{UVERBS_ATTR_CREATE_CQ_CQE, 0, EINVAL},
		{UVERBS_ATTR_CREATE_CQ_CQE, 257, EINVAL}, /* ring is smaller */
		{UVERBS_ATTR_CREATE_CQ_CQE, 1 << 23, EINVAL},
		{UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 64, EINVAL},
		{UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 3, EINVAL},
		{UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, ~0ull, EBADF},
		{UVERBS_ATTR_CREATE_CQ_FLAGS, IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
		 EOPNOTSUPP},
		{UVERBS_ATTR_CREATE_CQ_FLAGS, 1 << 7, EINVAL},
	};
	struct create_cq t;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fill_create_cq(&t);
		set(&t, bad[i].attr, bad[i].value);
		assert_int_equal(run(&t.cmd), bad[i].err);
	}
	assert_int_equal(fake.calls, 0);
}

TEST(driver_part_of_create_cq_obeys_its_header)
{
	struct create_cq t;

	fill_create_cq(&t);
	t.req.comp_mask = 1;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_cq(&t);
	t.req.flags = SCALEFABRIC_CQ_DOORBELL_PAGE;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_cq(&t);
	t.req.ring.kind = SCALEFABRIC_MEM_USER;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_cq(&t);
	t.req.ctrl.kind = SCALEFABRIC_MEM_DMABUF;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_cq(&t);
	t.req.reserved[2] = 1;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_cq(&t);
	t.req.ring.length = 4096;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_cq(&t);
	t.req.log_depth = SF_MAX_CQ_LOG_DEPTH + 1;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_cq(&t);
	find(&t.cmd, UVERBS_ATTR_UHW_IN)->len -= 8;
	assert_int_equal(run(&t.cmd), EINVAL);
	assert_int_equal(fake.calls, 0);
}

static int destroy_cq(struct ib_uverbs_destroy_cq_resp *resp)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);

	add(&cmd, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, FAKE_CQN);
	add_ptr(&cmd, UVERBS_ATTR_DESTROY_CQ_RESP, resp, sizeof(*resp));
	return run(&cmd);
}

TEST(destroyed_cq_reports_the_events_that_were_read)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct create_cq t;

	fill_create_cq(&t);
	assert_int_equal(run(&t.cmd), 0);
	fake.err = EBUSY; /* a QP still uses it */
	assert_int_equal(destroy_cq(&resp), EBUSY);
	assert_int_equal(fake.drops, 0);

	fake.err = 0;
	fake.rsp.destroyed.comp_events = 5;
	fake.rsp.destroyed.async_events = 2;
	fake.unread = 2;
	assert_int_equal(destroy_cq(&resp), 0);
	assert_int_equal(resp.comp_events_reported, 3);
	assert_int_equal(resp.async_events_reported, 0);
	assert_int_equal(fake.drop_fd[0], FAKE_CHANNEL_FD);
	assert_int_equal(fake.drop_record[0], USER_HANDLE);
	assert_int_equal(fake.drop_size[0], 8);
	assert_int_equal(fake.drop_fd[1], FAKE_ASYNC_FD);
	assert_int_equal(fake.drop_record[1], USER_HANDLE);
	assert_int_equal(fake.drop_size[1], 16);
}

TEST(resized_cq_has_a_new_ring)
{
	struct scalefabric_resize_cq_resp driver_resp = {};
	struct scalefabric_resize_cq_req driver = {.ring.fd = -1,
						   .log_depth = 10};
	struct ib_uverbs_resize_cq req = {.cq_handle = FAKE_CQN, .cqe = 1000};
	struct ib_uverbs_resize_cq_resp resp = {};

#define RESIZE()                                                      \
	invoke(IB_USER_VERBS_CMD_RESIZE_CQ, &req, sizeof(req), &resp, \
	       sizeof(resp), &driver, sizeof(driver), &driver_resp,   \
	       sizeof(driver_resp))
	assert_int_equal(RESIZE(), 0);
	assert_int_equal(resp.cqe, 1024);
	assert_int_equal(driver_resp.ring.mmap_key, 0x4000000);
	assert_int_equal(driver_resp.ring.length, 0x4000);
	assert_int_equal(fake.req.resize_cq.cqn, FAKE_CQN);
	assert_int_equal(fake.req.resize_cq.log_depth, 10);
	req.cqe = 1025;
	assert_int_equal(RESIZE(), EINVAL);
	req.cqe = 0;
	assert_int_equal(RESIZE(), EINVAL);
	req.cqe = 1;
	driver.reserved[6] = 1;
	assert_int_equal(RESIZE(), EINVAL);
	driver.reserved[6] = 0;
	driver.ring.kind = SCALEFABRIC_MEM_USER;
	assert_int_equal(RESIZE(), EOPNOTSUPP);
#undef RESIZE
}

/* ---- queue pairs ----------------------------------------------------- */

struct create_qp {
	struct ioctl_cmd cmd;
	struct scalefabric_create_qp_req req;
	struct scalefabric_create_qp_resp resp;
	struct ib_uverbs_qp_cap cap; /* both ways, as libibverbs does */
	uint32_t qpn;
};

static void fill_create_qp(struct create_qp *t)
{
	memset(t, 0, sizeof(*t));
	fake_expect_qp();
	t->cap = (struct ib_uverbs_qp_cap){60, 30, 1, 1, 16};
	t->req.sq.fd = t->req.line.fd = t->req.rq.fd = -1;
	t->req.flags = SCALEFABRIC_QP_INLINE_RECV;
	t->req.sq_log_depth = 6;
	t->req.sq_log_stride = 7;
	t->req.rq_log_depth = 5;
	t->req.rq_log_stride = 6;
	t->cmd = begin(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, FAKE_PDN);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, FAKE_CQN);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, FAKE_CQN + 1);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_TYPE, 8, IB_UVERBS_QPT_RC);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, USER_HANDLE);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_FLAGS, 4, 0);
	add(&t->cmd, UVERBS_ATTR_CREATE_QP_EVENT_FD, 0, FAKE_ASYNC_FD);
	add_ptr(&t->cmd, UVERBS_ATTR_CREATE_QP_CAP, &t->cap, sizeof(t->cap));
	add_ptr(&t->cmd, UVERBS_ATTR_CREATE_QP_RESP_CAP, &t->cap,
		sizeof(t->cap));
	add_ptr(&t->cmd, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &t->qpn, 4);
	add_ptr(&t->cmd, UVERBS_ATTR_UHW_IN, &t->req, sizeof(t->req));
	add_ptr(&t->cmd, UVERBS_ATTR_UHW_OUT, &t->resp, sizeof(t->resp));
}

TEST(qp_number_is_its_handle_and_its_memory_is_named)
{
	struct create_qp t;

	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_FLAGS)->data =
		IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(find(&t.cmd, UVERBS_ATTR_CREATE_QP_HANDLE)->data,
			 FAKE_QPN);
	assert_int_equal(t.qpn, FAKE_QPN);
	assert_int_equal(t.resp.qpn, FAKE_QPN);
	assert_int_equal(t.resp.sq_start, 64);
	assert_int_equal(t.resp.rq_start, 0);
	assert_int_equal(t.resp.sq.mmap_key, 0x5000000);
	assert_int_equal(t.resp.sq.length, 0x3000);
	assert_int_equal(t.resp.sq.offset, 0x40);
	assert_int_equal(t.resp.line.mmap_key, 0x5000000);
	assert_int_equal(t.resp.line.offset, 0);
	assert_int_equal(t.resp.rq.mmap_key, 0x5000000);
	assert_int_equal(t.resp.rq.offset, 0x2040);
	assert_int_equal(t.resp.sq_doorbell.mmap_key, 0x5010000);
	assert_int_equal(t.resp.sq_doorbell.length, RNIC_PAGE);
	assert_int_equal(t.resp.sq_doorbell.offset, 0);
	assert_int_equal(t.resp.rq_doorbell.mmap_key, 0x5010000);
	assert_int_equal(t.resp.rq_doorbell.offset, 64);
	assert_int_equal(fake.req.qp.type, RNIC_QPT_RC);
	assert_int_equal(fake.req.qp.pdn, FAKE_PDN);
	assert_int_equal(fake.req.qp.send_cqn, FAKE_CQN);
	assert_int_equal(fake.req.qp.recv_cqn, FAKE_CQN + 1);
	assert_int_equal(fake.req.qp.sq_sig_all, 1);
	assert_int_equal(fake.req.qp.inline_recv, 1);
	assert_int_equal(fake.req.qp.sq_log_depth, 6);
	assert_int_equal(fake.req.qp.sq_log_stride, 7);
	assert_int_equal(fake.req.qp.rq_log_depth, 5);
	assert_int_equal(fake.req.qp.rq_log_stride, 6);
	assert_int_equal(fake.req.qp.user_handle, USER_HANDLE);
}

TEST(qp_is_granted_all_that_its_queues_hold)
{
	struct create_qp t;

	fill_create_qp(&t);
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(t.cap.max_send_wr, 64);
	assert_int_equal(t.cap.max_recv_wr, 32);
	assert_int_equal(t.cap.max_send_sge, 6); /* (128 - 32) / 16 */
	assert_int_equal(t.cap.max_recv_sge, 3); /* (64 - 16) / 16 */
	assert_int_equal(t.cap.max_inline_data, 96);
	assert_memory_equal(&fake.req.qp.cap, &t.cap, sizeof(t.cap));

	fill_create_qp(&t);
	t.req.sq_log_stride = SF_SLOT_LOG_MAX;
	t.req.rq_log_stride = SF_RQ_LOG_MAX;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(t.cap.max_send_sge, SF_MAX_SEND_SGE);
	assert_int_equal(t.cap.max_inline_data, SF_MAX_INLINE);
	assert_int_equal(t.cap.max_recv_sge, SF_MAX_RECV_SGE);
}

TEST(capabilities_that_the_queues_do_not_hold_are_einval)
{
	static const struct ib_uverbs_qp_cap bad[] = {
		{65, 30, 1, 1, 16}, {60, 33, 1, 1, 16}, {60, 30, 7, 1, 16},
		{60, 30, 1, 4, 16}, {60, 30, 1, 1, 97}, {1 << 16, 30, 1, 1, 16},
	};
	struct create_qp t;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fill_create_qp(&t);
		t.cap = bad[i];
		assert_int_equal(run(&t.cmd), EINVAL);
		assert_memory_equal(&t.cap, &bad[i], sizeof(t.cap));
	}
	assert_int_equal(fake.calls, 0);
}

TEST(other_transports_are_not_supported)
{
	static const uint64_t types[] = {
		IB_UVERBS_QPT_DRIVER,
	};
	struct create_qp t;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		fill_create_qp(&t);
		find(&t.cmd, UVERBS_ATTR_CREATE_QP_TYPE)->data = types[i];
		assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	}
	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_TYPE)->data = 77;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_qp(&t);
	add(&t.cmd, UVERBS_ATTR_CREATE_QP_SOURCE_QPN, 4, 1);
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_FLAGS)->data =
		IB_UVERBS_QP_CREATE_SCATTER_FCS;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	assert_int_equal(fake.calls, 0);
}

TEST(other_transports_pass_their_type_on)
{
	struct create_qp t;

	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_TYPE)->data = IB_UVERBS_QPT_UD;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(fake.req.qp.type, RNIC_QPT_UD);
	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_TYPE)->data = IB_UVERBS_QPT_UC;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(fake.req.qp.type, RNIC_QPT_UC);
}

/* ---- address handles, multicast groups ------------------------------- */

TEST(address_handle_comes_with_its_number)
{
	struct ib_uverbs_create_ah req = {
		.pd_handle = FAKE_PDN,
		.attr = {.grh = {.dgid = {0xfe, [15] = 9},
				 .flow_label = 7,
				 .sgid_index = 1,
				 .hop_limit = 64,
				 .traffic_class = 3},
			 .dlid = 5,
			 .sl = 2,
			 .src_path_bits = 1,
			 .is_global = 1,
			 .port_num = 1},
	};
	struct ib_uverbs_destroy_ah destroy = {FAKE_AH};
	struct scalefabric_create_ah_resp driver;
	struct ib_uverbs_create_ah_resp resp;

	assert_int_equal(invoke(IB_USER_VERBS_CMD_CREATE_AH, &req, sizeof(req),
				&resp, sizeof(resp), NULL, 0, &driver,
				sizeof(driver)),
			 0);
	assert_int_equal(resp.ah_handle, FAKE_AH);
	assert_int_equal(driver.ah, FAKE_AH);
	assert_int_equal(fake.req.create_ah.pdn, FAKE_PDN);
	assert_int_equal(fake.req.create_ah.av.dlid, 5);
	assert_int_equal(fake.req.create_ah.av.dgid[15], 9);
	assert_int_equal(fake.req.create_ah.av.sgid_index, 1);
	assert_int_equal(fake.req.create_ah.av.is_global, 1);
	assert_int_equal(invoke(IB_USER_VERBS_CMD_DESTROY_AH, &destroy,
				sizeof(destroy), NULL, 0, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(fake.req.op, SFNIC_DESTROY_AH);
	assert_int_equal(fake.req.id, FAKE_AH);
}

TEST(address_handle_is_destroyed_by_ioctl)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY);

	add(&cmd, UVERBS_ATTR_DESTROY_AH_HANDLE, 0, FAKE_AH);
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(fake.req.op, SFNIC_DESTROY_AH);
	assert_int_equal(fake.req.id, FAKE_AH);
}

TEST(groups_are_joined_and_left)
{
	struct ib_uverbs_attach_mcast req = {
		.gid = {0xff, [15] = 4}, .qp_handle = FAKE_QPN, .mlid = 0xc001};

	assert_int_equal(invoke(IB_USER_VERBS_CMD_ATTACH_MCAST, &req,
				sizeof(req), NULL, 0, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(fake.req.op, SFNIC_ATTACH_MCAST);
	assert_int_equal(fake.req.mcast.qpn, FAKE_QPN);
	assert_int_equal(fake.req.mcast.mlid, 0xc001);
	assert_memory_equal(fake.req.mcast.mgid, req.gid, 16);
	assert_int_equal(invoke(IB_USER_VERBS_CMD_DETACH_MCAST, &req,
				sizeof(req), NULL, 0, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(fake.req.op, SFNIC_DETACH_MCAST);
}

TEST(qp_with_a_shared_queue_has_none_of_its_own)
{
	struct create_qp t;

	fill_create_qp(&t);
	add(&t.cmd, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 0, FAKE_SRQN);
	assert_int_equal(run(&t.cmd), EINVAL); /* both */
	t.req.rq_log_depth = t.req.rq_log_stride = 0;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(fake.req.qp.srqn, FAKE_SRQN);
	assert_int_equal(t.cap.max_recv_wr, 0);
	assert_int_equal(t.cap.max_recv_sge, 0);
	assert_int_equal(t.resp.rq.length, 0);
	assert_int_equal(t.resp.rq_doorbell.length, 0);
	fill_create_qp(&t);
	t.req.rq_log_depth = t.req.rq_log_stride = 0;
	assert_int_equal(run(&t.cmd), EINVAL); /* none */
}

/* ---- shared receive queues ------------------------------------------- */

struct create_srq {
	struct ioctl_cmd cmd;
	struct scalefabric_create_srq_req req;
	struct scalefabric_create_srq_resp resp;
	uint32_t max_wr, max_sge, srqn;
};

static void fill_create_srq(struct create_srq *t)
{
	memset(t, 0, sizeof(*t));
	fake_expect_srq();
	t->req.ring.fd = -1;
	t->req.log_depth = 7;
	t->req.log_stride = 6;
	t->cmd = begin(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0, 0);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, 0, FAKE_PDN);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_TYPE, 8, IB_UVERBS_SRQT_BASIC);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, 0x5299);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, 100);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, 2);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, 0);
	add(&t->cmd, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, 0, FAKE_ASYNC_FD);
	add_ptr(&t->cmd, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &t->max_wr, 4);
	add_ptr(&t->cmd, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &t->max_sge, 4);
	add_ptr(&t->cmd, UVERBS_ATTR_UHW_IN, &t->req, sizeof(t->req));
	add_ptr(&t->cmd, UVERBS_ATTR_UHW_OUT, &t->resp, sizeof(t->resp));
}

TEST(srq_is_created_and_destroyed)
{
	struct ib_uverbs_destroy_srq_resp gone;
	struct ioctl_cmd cmd;
	struct create_srq t;

	fill_create_srq(&t);
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_HANDLE)->data,
			 FAKE_SRQN);
	assert_int_equal(t.max_wr, 128);
	assert_int_equal(t.max_sge, 3);
	assert_int_equal(t.resp.srqn, FAKE_SRQN);
	assert_int_equal(t.resp.ring.mmap_key, 0x6000000);
	assert_int_equal(t.resp.ring.length, 0x2000);
	assert_int_equal(t.resp.doorbell.mmap_key, 0x6010000);
	assert_int_equal(t.resp.doorbell.length, RNIC_PAGE);
	assert_int_equal(fake.req.srq.pdn, FAKE_PDN);
	assert_int_equal(fake.req.srq.log_depth, 7);
	assert_int_equal(fake.req.srq.log_stride, 6);
	assert_int_equal(fake.req.srq.user_handle, 0x5299);

	cmd = begin(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY);
	add(&cmd, UVERBS_ATTR_DESTROY_SRQ_HANDLE, 0, FAKE_SRQN);
	add_ptr(&cmd, UVERBS_ATTR_DESTROY_SRQ_RESP, &gone, sizeof(gone));
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(fake.srqs, 0);
	assert_int_equal(gone.events_reported, 0);
}

TEST(srq_that_cannot_be_is_refused)
{
	struct create_srq t;

	fill_create_srq(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_TYPE)->data = IB_UVERBS_SRQT_XRC;
	assert_int_equal(run(&t.cmd), EINVAL); /* no domain, no CQ */
	fill_create_srq(&t);
	add(&t.cmd, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, 0, FAKE_XRCD);
	add(&t.cmd, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, 0, FAKE_CQN);
	assert_int_equal(run(&t.cmd), EINVAL); /* of a plain one */
	fill_create_srq(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_TYPE)->data = IB_UVERBS_SRQT_TM;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_srq(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_TYPE)->data = 77;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_srq(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_MAX_WR)->data = 129;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_srq(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_MAX_WR)->data = 0;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_srq(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_MAX_SGE)->data = 4;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_srq(&t);
	t.req.comp_mask = 1;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_srq(&t);
	t.req.flags = 1;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_srq(&t);
	t.req.reserved[1] = 1;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_srq(&t);
	t.req.ring.kind = SCALEFABRIC_MEM_USER;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_srq(&t);
	t.req.log_stride = SF_RQ_LOG_MAX + 1;
	assert_int_equal(run(&t.cmd), EINVAL);
	assert_int_equal(fake.calls, 0);
}

TEST(cq_is_moderated)
{
	struct ib_uverbs_ex_modify_cq req = {FAKE_CQN, 1, {16, 100}, 0};

#define MODIFY()                                                         \
	invoke(EXT(IB_USER_VERBS_EX_CMD_MODIFY_CQ), &req, sizeof(req),   \
	       NULL, 0, NULL, 0, NULL, 0)

	assert_int_equal(MODIFY(), 0);
	assert_int_equal(fake.req.op, SFNIC_MODERATE_CQ);
	assert_int_equal(fake.req.moderate_cq.cqn, FAKE_CQN);
	assert_int_equal(fake.req.moderate_cq.count, 16);
	assert_int_equal(fake.req.moderate_cq.period, 100);
	fake.calls = 0;
	req.attr_mask = 2;
	assert_int_equal(MODIFY(), EOPNOTSUPP);
	req.attr_mask = 0;
	assert_int_equal(MODIFY(), EINVAL);
	req.attr_mask = 1;
	req.reserved = 1;
	assert_int_equal(MODIFY(), EINVAL);
	assert_int_equal(fake.calls, 0);
#undef MODIFY
}

TEST(srq_is_armed_and_asked)
{
	struct ib_uverbs_query_srq query = {.srq_handle = FAKE_SRQN};
	struct ib_uverbs_modify_srq modify = {FAKE_SRQN, 2, 0, 9};
	struct ib_uverbs_query_srq_resp resp;

	assert_int_equal(invoke(IB_USER_VERBS_CMD_MODIFY_SRQ, &modify,
				sizeof(modify), NULL, 0, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(fake.req.op, SFNIC_MODIFY_SRQ);
	assert_int_equal(fake.req.modify_srq.srqn, FAKE_SRQN);
	assert_int_equal(fake.req.modify_srq.limit, 9);
	modify.attr_mask = 4;
	assert_int_equal(invoke(IB_USER_VERBS_CMD_MODIFY_SRQ, &modify,
				sizeof(modify), NULL, 0, NULL, 0, NULL, 0),
			 EINVAL);
	fake_expect_srq();
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_QUERY_SRQ, &query, &resp), 0);
	assert_int_equal(resp.max_wr, 128);
	assert_int_equal(resp.max_sge, 3);
	assert_int_equal(resp.srq_limit, 5);
}

TEST(srq_is_resized)
{
	struct scalefabric_modify_srq_resp resp = {};
	struct scalefabric_modify_srq_req driver = {
		.response = (uintptr_t)&resp, .ring.fd = -1, .log_depth = 7};
	struct ib_uverbs_modify_srq modify = {FAKE_SRQN, 1, 100, 0};

#define RESIZE()                                                         \
	invoke(IB_USER_VERBS_CMD_MODIFY_SRQ, &modify, sizeof(modify),    \
	       NULL, 0, &driver, sizeof(driver), NULL, 0)

	fake_expect_srq();
	assert_int_equal(RESIZE(), 0);
	assert_int_equal(fake.req.op, SFNIC_MODIFY_SRQ);
	assert_int_equal(fake.req.modify_srq.srqn, FAKE_SRQN);
	assert_true(fake.req.modify_srq.resize);
	assert_int_equal(fake.req.modify_srq.log_depth, 7);
	assert_int_equal(resp.ring.mmap_key, fake.rsp.srq.mem.ring);
	assert_true(resp.ring.length >= fake.rsp.srq.mem.ring_len);

	fake.calls = 0;
	modify.max_wr = 129;
	assert_int_equal(RESIZE(), EINVAL);
	modify.max_wr = 0;
	assert_int_equal(RESIZE(), EINVAL);
	modify.max_wr = 100;
	modify.attr_mask = 3; /* and a limit */
	assert_int_equal(RESIZE(), EINVAL);
	modify.attr_mask = 1;
	driver.response = 8; /* nobody's */
	assert_int_equal(RESIZE(), EFAULT);
	driver.response = (uintptr_t)&resp;
	driver.comp_mask = 1;
	assert_int_equal(RESIZE(), EOPNOTSUPP);
	driver.comp_mask = 0;
	driver.reserved[6] = 1;
	assert_int_equal(RESIZE(), EINVAL);
	driver.reserved[6] = 0;
	driver.log_depth = SF_MAX_LOG_DEPTH + 1;
	assert_int_equal(RESIZE(), EINVAL);
	assert_int_equal(invoke(IB_USER_VERBS_CMD_MODIFY_SRQ, &modify,
				sizeof(modify), NULL, 0, NULL, 0, NULL, 0),
			 EINVAL);
	assert_int_equal(fake.calls, 0);
#undef RESIZE
}

TEST(xrc_srq_is_made_of_domain_and_cq)
{
	struct ib_uverbs_create_xsrq req = {
		.user_handle = 0x5299,
		.pd_handle = FAKE_PDN,
		.max_wr = 100,
		.max_sge = 2,
		.srq_type = IB_UVERBS_SRQT_XRC,
		.xrcd_handle = FAKE_XRCD,
		.cq_handle = FAKE_CQN,
	};
	struct ib_uverbs_create_srq_resp resp;
	struct create_srq t;
	uint32_t num = 0;

	fill_create_srq(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_SRQ_TYPE)->data = IB_UVERBS_SRQT_XRC;
	add(&t.cmd, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, 0, FAKE_XRCD);
	add(&t.cmd, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, 0, FAKE_CQN);
	add_ptr(&t.cmd, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &num, 4);
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(num, FAKE_SRQN);
	assert_int_equal(fake.req.srq.xrcd, FAKE_XRCD);
	assert_int_equal(fake.req.srq.cqn, FAKE_CQN);

	/* The command of old. */
	assert_int_equal(invoke(IB_USER_VERBS_CMD_CREATE_XSRQ, &req,
				sizeof(req), &resp, sizeof(resp), &t.req,
				sizeof(t.req), &t.resp, sizeof(t.resp)),
			 0);
	assert_int_equal(resp.srqn, FAKE_SRQN);
	assert_int_equal(fake.req.srq.xrcd, FAKE_XRCD);
	assert_int_equal(fake.req.srq.cqn, FAKE_CQN);
}

TEST(xrc_domain_is_opened_by_its_file)
{
	struct ib_uverbs_open_xrcd req = {.fd = 5, .oflags = O_CREAT | O_EXCL};
	struct ib_uverbs_close_xrcd close = {.xrcd_handle = FAKE_XRCD};
	struct ib_uverbs_open_xrcd_resp resp;
	struct ioctl_cmd cmd;

	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_OPEN_XRCD, &req, &resp), 0);
	assert_int_equal(resp.xrcd_handle, FAKE_XRCD);
	assert_true(fake.req.xrcd.create && fake.req.xrcd.exclusive);
	assert_true(fake.req.xrcd.has_file);
	assert_int_equal(fake.sent_fd, 1005);
	assert_int_equal(fake.fds, 0); /* what was sent is closed here */
	req.oflags = 0;
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_OPEN_XRCD, &req, &resp), 0);
	assert_false(fake.req.xrcd.create || fake.req.xrcd.exclusive);
	req.fd = -1; /* a domain of its own, with or without O_CREAT */
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_OPEN_XRCD, &req, &resp), 0);
	assert_true(fake.req.xrcd.create && !fake.req.xrcd.has_file);
	assert_int_equal(fake.sent_fd, -1);
	req.fd = -2;
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_OPEN_XRCD, &req, &resp),
			 EBADF);

	assert_int_equal(invoke(IB_USER_VERBS_CMD_CLOSE_XRCD, &close,
				sizeof(close), NULL, 0, NULL, 0, NULL, 0),
			 0);
	cmd = begin(UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY);
	add(&cmd, UVERBS_ATTR_DESTROY_XRCD_HANDLE, 0, FAKE_XRCD);
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(fake.req.op, SFNIC_CLOSE_XRCD);
	assert_int_equal(fake.req.id, FAKE_XRCD);
	assert_int_equal(fake.xrcds, 1);
}

TEST(srq_commands_of_old)
{
	struct ib_uverbs_create_srq req = {
		.user_handle = 0x5299,
		.pd_handle = FAKE_PDN,
		.max_wr = 100,
		.max_sge = 2,
	};
	struct ib_uverbs_destroy_srq_resp gone;
	struct ib_uverbs_destroy_srq destroy = {.srq_handle = FAKE_SRQN};
	struct ib_uverbs_create_srq_resp resp;
	struct create_srq t;

	fill_create_srq(&t);
	assert_int_equal(invoke(IB_USER_VERBS_CMD_CREATE_SRQ, &req, sizeof(req),
				&resp, sizeof(resp), &t.req, sizeof(t.req),
				&t.resp, sizeof(t.resp)),
			 0);
	assert_int_equal(resp.srq_handle, FAKE_SRQN);
	assert_int_equal(resp.max_wr, 128);
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_DESTROY_SRQ, &destroy, &gone),
			 0);
	assert_int_equal(fake.srqs, 0);
}

TEST(xrc_sender_has_no_receive_queue)
{
	struct create_qp t;

	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_TYPE)->data = IB_UVERBS_QPT_XRC_INI;
	assert_int_equal(run(&t.cmd), EINVAL);
	t.req.rq_log_depth = t.req.rq_log_stride = 0;
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_HANDLE)->data = 0;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(fake.req.qp.type, RNIC_QPT_XRC_SEND);
	assert_int_equal(fake.req.qp.recv_cqn, 0);
	assert_int_equal(t.cap.max_recv_wr, 0);
	assert_int_equal(t.resp.rq.length, 0);
	assert_int_equal(t.resp.rq_doorbell.length, 0);
}

TEST(xrc_target_has_a_domain_and_a_handle_of_its_own)
{
	struct ib_uverbs_open_qp req = {
		.user_handle = USER_HANDLE,
		.pd_handle = FAKE_XRCD,
		.qpn = FAKE_QPN,
		.qp_type = IB_UVERBS_QPT_XRC_TGT,
	};
	struct ib_uverbs_create_qp_resp resp;
	struct create_qp t;

	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_TYPE)->data = IB_UVERBS_QPT_XRC_TGT;
	assert_int_equal(run(&t.cmd), EINVAL); /* no domain */
	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_TYPE)->data = IB_UVERBS_QPT_XRC_TGT;
	add(&t.cmd, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, 0, FAKE_XRCD);
	assert_int_equal(run(&t.cmd), EINVAL); /* queues */
	t.req.sq_log_depth = t.req.sq_log_stride = 0;
	t.req.rq_log_depth = t.req.rq_log_stride = 0;
	fake.rsp.qp.mem.handle = FAKE_QP_REF;
	assert_int_equal(run(&t.cmd), 0);
	assert_int_equal(fake.req.qp.xrcd, FAKE_XRCD);
	assert_int_equal(fake.req.qp.pdn | fake.req.qp.send_cqn |
				 fake.req.qp.recv_cqn,
			 0);
	assert_int_equal(find(&t.cmd, UVERBS_ATTR_CREATE_QP_HANDLE)->data,
			 FAKE_QP_REF);
	assert_int_equal(t.qpn, FAKE_QPN);
	assert_int_equal(t.resp.sq.length | t.resp.rq.length, 0);
	assert_int_equal(t.cap.max_send_wr | t.cap.max_inline_data, 0);

	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_OPEN_QP, &req, &resp), 0);
	assert_int_equal(resp.qp_handle, FAKE_QP_REF);
	assert_int_equal(resp.qpn, FAKE_QPN);
	assert_int_equal(fake.req.open_qp.xrcd, FAKE_XRCD);
	assert_int_equal(fake.req.open_qp.user_handle, USER_HANDLE);
	req.qp_type = IB_UVERBS_QPT_RC;
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_OPEN_QP, &req, &resp),
			 EINVAL);
}

TEST(driver_part_of_create_qp_obeys_its_header)
{
	struct create_qp t;

	fill_create_qp(&t);
	t.req.comp_mask = 1ull << 40;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_qp(&t);
	t.req.flags |= SCALEFABRIC_QP_POLLED;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_qp(&t);
	t.req.line.kind = SCALEFABRIC_MEM_USER;
	assert_int_equal(run(&t.cmd), EOPNOTSUPP);
	fill_create_qp(&t);
	t.req.sq_log_stride = SF_SLOT_LOG_MIN - 1;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_qp(&t);
	t.req.rq_log_stride = 0;
	assert_int_equal(run(&t.cmd), EINVAL);
	fill_create_qp(&t);
	t.req.rq_log_depth = SF_MAX_LOG_DEPTH + 1;
	assert_int_equal(run(&t.cmd), EINVAL);
	assert_int_equal(fake.calls, 0);
}

TEST(qp_whose_answer_cannot_be_written_is_not_created)
{
	struct create_qp t;

	fill_create_qp(&t);
	find(&t.cmd, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM)->data = NOWHERE;
	assert_int_equal(run(&t.cmd), EFAULT);
	assert_int_equal(fake.calls, 0);
}

TEST(destroyed_qp_reports_the_events_that_were_read)
{
	struct ioctl_cmd cmd =
		begin(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
	struct ib_uverbs_destroy_qp_resp resp = {};

	/* The first call asks for the user handle, the second destroys. */
	fake.rsp.query_qp.init.user_handle = USER_HANDLE;
	add(&cmd, UVERBS_ATTR_DESTROY_QP_HANDLE, 0, FAKE_QPN);
	add_ptr(&cmd, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(fake.req.op, SFNIC_DESTROY_QP);
	assert_int_equal(fake.req.id, FAKE_QPN);
	fake.rsp.destroyed.async_events = 3;
	fake.unread = 1;
	assert_int_equal(run(&cmd), 0);
	assert_int_equal(resp.events_reported, 2);
	assert_int_equal(fake.drop_fd[0], FAKE_ASYNC_FD);
	assert_int_equal(fake.drop_size[0], 16);
}

/* Every byte another value, so that none can take the place of another. */
static void fill_dest(struct ib_uverbs_qp_dest *dest, uint8_t seed)
{
	memset(dest->dgid, seed, 16);
	dest->flow_label = seed + 1;
	dest->dlid = seed + 2;
	dest->sgid_index = seed + 3;
	dest->hop_limit = seed + 4;
	dest->traffic_class = seed + 5;
	dest->sl = seed + 6;
	dest->src_path_bits = seed + 7;
	dest->static_rate = seed + 8;
	dest->is_global = seed + 9;
	dest->port_num = seed + 10;
}

static void check_av(const struct rnic_av *av, uint8_t seed)
{
	uint8_t gid[16];

	memset(gid, seed, 16);
	assert_memory_equal(av->dgid, gid, 16);
	assert_int_equal(av->flow_label, seed + 1);
	assert_int_equal(av->dlid, seed + 2);
	assert_int_equal(av->sgid_index, seed + 3);
	assert_int_equal(av->hop_limit, seed + 4);
	assert_int_equal(av->traffic_class, seed + 5);
	assert_int_equal(av->sl, seed + 6);
	assert_int_equal(av->src_path_bits, seed + 7);
	assert_int_equal(av->static_rate, seed + 8);
	assert_int_equal(av->is_global, seed + 9);
	assert_int_equal(av->port_num, seed + 10);
}

static void fill_modify(struct ib_uverbs_modify_qp *req)
{
	memset(req, 0, sizeof(*req));
	fill_dest(&req->dest, 100);
	fill_dest(&req->alt_dest, 120);
	req->qp_handle = FAKE_QPN;
	req->attr_mask = 0x1fffff;
	req->qkey = 1;
	req->rq_psn = 2;
	req->sq_psn = 3;
	req->dest_qp_num = 4;
	req->qp_access_flags = 5;
	req->pkey_index = 6;
	req->alt_pkey_index = 7;
	req->qp_state = 8;
	req->cur_qp_state = 9;
	req->path_mtu = 10;
	req->path_mig_state = 11;
	req->en_sqd_async_notify = 12;
	req->max_rd_atomic = 13;
	req->max_dest_rd_atomic = 14;
	req->min_rnr_timer = 15;
	req->port_num = 16;
	req->timeout = 17;
	req->retry_cnt = 18;
	req->rnr_retry = 19;
	req->alt_port_num = 20;
	req->alt_timeout = 21;
}

static void check_attr(const struct rnic_qp_attr *attr)
{
	check_av(&attr->av, 100);
	check_av(&attr->alt_av, 120);
	assert_int_equal(attr->qkey, 1);
	assert_int_equal(attr->rq_psn, 2);
	assert_int_equal(attr->sq_psn, 3);
	assert_int_equal(attr->dest_qpn, 4);
	assert_int_equal(attr->access, 5);
	assert_int_equal(attr->pkey_index, 6);
	assert_int_equal(attr->alt_pkey_index, 7);
	assert_int_equal(attr->state, 8);
	assert_int_equal(attr->cur_state, 9);
	assert_int_equal(attr->path_mtu, 10);
	assert_int_equal(attr->path_mig_state, 11);
	assert_int_equal(attr->en_sqd_notify, 12);
	assert_int_equal(attr->max_rd_atomic, 13);
	assert_int_equal(attr->max_dest_rd_atomic, 14);
	assert_int_equal(attr->min_rnr_timer, 15);
	assert_int_equal(attr->port_num, 16);
	assert_int_equal(attr->timeout, 17);
	assert_int_equal(attr->retry_cnt, 18);
	assert_int_equal(attr->rnr_retry, 19);
	assert_int_equal(attr->alt_port_num, 20);
	assert_int_equal(attr->alt_timeout, 21);
}

static int modify(const struct ib_uverbs_modify_qp *req)
{
	return invoke(IB_USER_VERBS_CMD_MODIFY_QP, req, sizeof(*req), NULL, 0,
		      NULL, 0, NULL, 0);
}

TEST(every_attribute_of_modify_reaches_the_backend)
{
	struct ib_uverbs_modify_qp req;

	fill_modify(&req);
	assert_int_equal(modify(&req), 0);
	assert_int_equal(fake.req.op, SFNIC_MODIFY_QP);
	assert_int_equal(fake.req.modify_qp.qpn, FAKE_QPN);
	assert_int_equal(fake.req.modify_qp.mask, 0x1fffff);
	check_attr(&fake.req.modify_qp.attr);
}

TEST(rate_limit_needs_the_extended_modify)
{
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	struct ib_uverbs_ex_modify_qp req = {};

	fill_modify(&req.base);
	req.base.attr_mask |= RNIC_QP_RATE_LIMIT;
	req.rate_limit = 0; /* no limit: the only one there is */
	assert_int_equal(modify(&req.base), EOPNOTSUPP);
	assert_int_equal(
		INVOKE(EXT(IB_USER_VERBS_EX_CMD_MODIFY_QP), &req, &resp), 0);
	assert_int_equal(fake.req.modify_qp.attr.rate_limit, 0);
	assert_int_equal(resp.response_length, sizeof(resp));
	check_attr(&fake.req.modify_qp.attr);
	assert_int_equal(invoke(EXT(IB_USER_VERBS_EX_CMD_MODIFY_QP), &req,
				sizeof(req.base), &resp, sizeof(resp), NULL, 0,
				NULL, 0),
			 EINVAL);
	req.base.attr_mask |= 1u << 30;
	assert_int_equal(INVOKE(EXT(IB_USER_VERBS_EX_CMD_MODIFY_QP), &req,
				&resp),
			 EOPNOTSUPP);
}

/* What modify sends and query answers are two structs with the same names. */
TEST(query_is_the_inverse_of_modify)
{
	struct ib_uverbs_query_qp req = {.qp_handle = FAKE_QPN};
	struct ib_uverbs_query_qp_resp resp;
	struct ib_uverbs_modify_qp set;

	fill_modify(&set);
	assert_int_equal(modify(&set), 0);
	fake.rsp.query_qp.attr = fake.req.modify_qp.attr;
	fake.rsp.query_qp.attr.sq_draining = 30;
	fake.rsp.query_qp.init.sq_sig_all = 1;
	fake.rsp.query_qp.init.cap = (struct rnic_qp_cap){31, 32, 33, 34, 35};
	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_QUERY_QP, &req, &resp), 0);
	assert_int_equal(fake.req.id, FAKE_QPN);

#define SAME(member) \
	assert_memory_equal(&resp.member, &set.member, sizeof(set.member))
	SAME(dest);
	SAME(alt_dest);
	SAME(qkey);
	SAME(rq_psn);
	SAME(sq_psn);
	SAME(dest_qp_num);
	SAME(qp_access_flags);
	SAME(pkey_index);
	SAME(alt_pkey_index);
	SAME(qp_state);
	SAME(cur_qp_state);
	SAME(path_mtu);
	SAME(path_mig_state);
	SAME(max_rd_atomic);
	SAME(max_dest_rd_atomic);
	SAME(min_rnr_timer);
	SAME(port_num);
	SAME(timeout);
	SAME(retry_cnt);
	SAME(rnr_retry);
	SAME(alt_port_num);
	SAME(alt_timeout);
#undef SAME
	assert_int_equal(resp.sq_draining, 30);
	assert_int_equal(resp.sq_sig_all, 1);
	assert_int_equal(resp.max_send_wr, 31);
	assert_int_equal(resp.max_recv_wr, 32);
	assert_int_equal(resp.max_send_sge, 33);
	assert_int_equal(resp.max_recv_sge, 34);
	assert_int_equal(resp.max_inline_data, 35);
}

/* ---- write(2) -------------------------------------------------------- */

struct post {
	struct ib_uverbs_cmd_hdr hdr;
	uint64_t response;
	uint32_t handle, wr_count, sge_count, wqe_size;
	uint32_t bad_wr;
};

static struct post post_cmd(uint32_t command, uint32_t handle)
{
	return (struct post){
		.hdr = {command, 8, 1},
		.response = NOWHERE,
		.handle = handle,
		.wqe_size = 64,
	};
}

TEST(post_without_work_requests_rings_the_queue)
{
	struct post send = post_cmd(IB_USER_VERBS_CMD_POST_SEND, FAKE_QPN);
	struct post recv = post_cmd(IB_USER_VERBS_CMD_POST_RECV, FAKE_QPN + 1);

	assert_int_equal(do_write(&send, 32), 32);
	assert_int_equal(do_write(&recv, 32), 32);
	assert_int_equal(fake.sq_rung, FAKE_QPN);
	assert_int_equal(fake.rq_rung, FAKE_QPN + 1);
	assert_int_equal(fake.calls, 0);
}

TEST(notify_of_a_cq_arms_it)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_req_notify_cq req;
	} arm = {{IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, 4, 0}, {FAKE_CQN, 0}};

	assert_int_equal(do_write(&arm, sizeof(arm)), sizeof(arm));
	assert_int_equal(fake.armed, FAKE_CQN);
}

TEST(work_requests_do_not_travel_by_write)
{
	struct post send = post_cmd(IB_USER_VERBS_CMD_POST_SEND, FAKE_QPN);
	struct post srq = post_cmd(IB_USER_VERBS_CMD_POST_SRQ_RECV, 1);

	send.wr_count = srq.wr_count = 1;
	assert_int_equal(do_write(&send, 32), -EOPNOTSUPP);
	assert_int_equal(do_write(&srq, 32), -EOPNOTSUPP);
	assert_int_equal(fake.sq_rung, 0);
	assert_int_equal(fake.srq_rung, 0);
	srq.wr_count = 0;
	assert_int_equal(do_write(&srq, 32), 32);
	assert_int_equal(fake.srq_rung, 1);
}

TEST(write_whose_header_and_length_differ_rings_nothing)
{
	struct post send = post_cmd(IB_USER_VERBS_CMD_POST_SEND, FAKE_QPN);

	send.response = (uintptr_t)&send.bad_wr;
	send.hdr.in_words = 9;
	assert_int_equal(do_write(&send, 32), -EINVAL);
	assert_int_equal(do_write(&send, 36), 36); /* longer, but all there */
	assert_int_equal(fake.sq_rung, FAKE_QPN);
	assert_int_equal(do_write(&send, 4), -EINVAL);
	assert_int_equal(do_write(&send, 0), -EINVAL);
}

TEST(ring_by_ioctl_is_the_same_ring)
{
	struct ib_uverbs_post_send req = {.qp_handle = FAKE_QPN};
	struct ib_uverbs_post_send_resp resp = {9};

	assert_int_equal(INVOKE(IB_USER_VERBS_CMD_POST_SEND, &req, &resp), 0);
	assert_int_equal(fake.sq_rung, FAKE_QPN);
	assert_int_equal(resp.bad_wr, 0);
}

TEST(legacy_write_splits_core_and_driver_parts)
{
	struct {
		uint32_t pd_handle;
		struct scalefabric_alloc_pd_resp driver;
	} resp = {};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd req;
	} cmd = {{IB_USER_VERBS_CMD_ALLOC_PD, 4, 3}, {(uintptr_t)&resp}};

	assert_int_equal(do_write(&cmd, sizeof(cmd)), sizeof(cmd));
	assert_int_equal(resp.pd_handle, FAKE_PDN);
	assert_int_equal(resp.driver.pdn, FAKE_PDN);
	cmd.hdr.out_words = 0;
	assert_int_equal(do_write(&cmd, sizeof(cmd)), -ENOSPC);
	cmd.hdr.out_words = 3;
	cmd.req.response = NOWHERE;
	assert_int_equal(do_write(&cmd, sizeof(cmd)), -EFAULT);
	assert_int_equal(fake.pds, 1);
}

TEST(extended_write_has_lengths_of_its_own)
{
	struct ib_uverbs_ex_query_device_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_query_device req;
	} cmd = {
		.hdr = {EXT(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), 1,
			sizeof(resp) / 8},
		.ex.response = (uintptr_t)&resp,
	};

	assert_int_equal(do_write(&cmd, sizeof(cmd)), sizeof(cmd));
	assert_int_equal(resp.base.vendor_part_id, 0x5f01);
	cmd.ex.response = 0;
	assert_int_equal(do_write(&cmd, sizeof(cmd)), -EINVAL);
	cmd.ex.response = (uintptr_t)&resp;
	cmd.ex.cmd_hdr_reserved = 1;
	assert_int_equal(do_write(&cmd, sizeof(cmd)), -EINVAL);
	cmd.ex.cmd_hdr_reserved = 0;
	cmd.ex.provider_in_words = 1;
	assert_int_equal(do_write(&cmd, sizeof(cmd)), -EINVAL);
	cmd.ex.provider_in_words = 0;
	cmd.hdr.out_words = 1;
	assert_int_equal(do_write(&cmd, sizeof(cmd)), -ENOSPC);
	assert_int_equal(do_write(&cmd, 16), -EINVAL);
}

TEST(commands_without_an_operation_are_eopnotsupp)
{
	static const uint32_t missing[] = {
		IB_USER_VERBS_CMD_POLL_CQ,
	};
	struct ib_uverbs_cmd_hdr hdr = {0, 2, 0};
	size_t i;

	for (i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		hdr.command = missing[i];
		assert_int_equal(do_write(&hdr, sizeof(hdr)), -EOPNOTSUPP);
		assert_int_equal(invoke(missing[i], NULL, 0, NULL, 0, NULL, 0,
					NULL, 0),
				 EOPNOTSUPP);
	}
}

TEST(numbers_that_name_no_command_are_einval)
{
	static const uint32_t unknown[] = {41, 0xff, EXT(58), 0x100, 1u << 30};
	struct ib_uverbs_cmd_hdr hdr = {0, 2, 0};
	size_t i;

	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		hdr.command = unknown[i];
		assert_int_equal(do_write(&hdr, sizeof(hdr)), -EINVAL);
	}
	assert_int_equal(invoke(1ull << 40 | IB_USER_VERBS_CMD_ALLOC_PD, NULL,
				0, NULL, 0, NULL, 0, NULL, 0),
			 EINVAL);
}

TEST(cq_and_qp_can_be_created_by_write_commands_too)
{
	struct scalefabric_create_cq_resp cq_driver_resp;
	struct scalefabric_create_qp_resp qp_driver_resp;
	struct ib_uverbs_ex_create_cq_resp cq_resp;
	struct ib_uverbs_create_qp_resp qp_resp;
	struct ib_uverbs_ex_create_cq cq_req = {
		.user_handle = USER_HANDLE,
		.cqe = 200,
		.comp_channel = -1,
	};
	struct ib_uverbs_create_qp qp_req = {
		.pd_handle = FAKE_PDN,
		.max_send_wr = 60,
		.sq_sig_all = 1,
		.qp_type = IB_UVERBS_QPT_RC,
	};
	struct create_cq cq;
	struct create_qp qp;

	fill_create_cq(&cq);
	assert_int_equal(invoke(EXT(IB_USER_VERBS_EX_CMD_CREATE_CQ), &cq_req,
				sizeof(cq_req), &cq_resp, sizeof(cq_resp),
				&cq.req, sizeof(cq.req), &cq_driver_resp,
				sizeof(cq_driver_resp)),
			 0);
	assert_int_equal(cq_resp.base.cq_handle, FAKE_CQN);
	assert_int_equal(cq_resp.base.cqe, 256);
	assert_int_equal(fake.req.cq.channel, 0);
	fill_create_qp(&qp);
	assert_int_equal(invoke(IB_USER_VERBS_CMD_CREATE_QP, &qp_req,
				sizeof(qp_req), &qp_resp, sizeof(qp_resp),
				&qp.req, sizeof(qp.req), &qp_driver_resp,
				sizeof(qp_driver_resp)),
			 0);
	assert_int_equal(qp_resp.qp_handle, FAKE_QPN);
	assert_int_equal(qp_resp.max_inline_data, 96);
	assert_int_equal(fake.req.qp.sq_sig_all, 1);
	qp_req.is_srq = 1;
	qp_req.srq_handle = FAKE_SRQN;
	qp.req.rq_log_depth = qp.req.rq_log_stride = 0;
	assert_int_equal(invoke(IB_USER_VERBS_CMD_CREATE_QP, &qp_req,
				sizeof(qp_req), &qp_resp, sizeof(qp_resp),
				&qp.req, sizeof(qp.req), &qp_driver_resp,
				sizeof(qp_driver_resp)),
			 0);
	assert_int_equal(fake.req.qp.srqn, FAKE_SRQN);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(asked_without_buffers_a_write_command_says_enospc),
		T(unknown_objects_and_methods_are_eprotonosupport),
		T(unknown_attribute_matters_if_it_is_mandatory),
		T(duplicated_attribute_is_einval),
		T(missing_attribute_is_einval),
		T(list_whose_length_and_count_differ_is_einval),
		T(reserved_fields_of_the_header_are_for_a_later_protocol),
		T(attribute_of_wrong_length_or_with_reserved_bits_is_einval),
		T(command_at_a_bad_address_is_efault),
		T(list_that_runs_off_its_page_is_efault),
		T(context_says_how_to_ring_and_what_fits),
		T(driver_part_may_grow_by_zeroes_only),
		T(answer_is_cut_or_filled_up_to_the_room_of_the_caller),
		T(async_events_come_through_a_file_descriptor),
		T(device_says_what_it_is_and_keeps),
		T(port_is_what_the_backend_says),
		T(gid_is_there_or_enodata_or_outside_of_the_table),
		T(gid_table_lists_what_is_there_at_the_callers_stride),
		T(pd_number_is_its_handle),
		T(answer_that_cannot_be_written_leaves_no_object),
		T(memory_region_reaches_the_backend_as_asked),
		T(address_and_iova_lie_at_the_same_place_in_a_page),
		T(access_flags_are_rights_or_hints),
		T(the_whole_address_space_is_registered_on_demand_only),
		T(a_null_region_is_everywhere_and_nobodys_target),
		T(reregistration_says_what_changes),
		T(a_region_can_be_asked_for_by_its_number),
		T(advice_is_about_regions_on_demand),
		T(a_dmabuf_is_registered_by_descriptor_and_offset),
		T(a_window_goes_by_its_first_key),
		T(device_memory_is_limited_and_aligned_to_its_pages),
		T(who_imports_asks_what_there_is),
		T(a_region_of_device_memory_is_zero_based),
		T(memory_region_goes_by_its_key),
		T(cq_number_is_its_handle_and_its_memory_is_named),
		T(cq_timestamps_can_be_asked_for_in_two_ways),
		T(cq_that_cannot_be_is_refused_before_it_exists),
		T(driver_part_of_create_cq_obeys_its_header),
		T(destroyed_cq_reports_the_events_that_were_read),
		T(resized_cq_has_a_new_ring),
		T(qp_number_is_its_handle_and_its_memory_is_named),
		T(qp_is_granted_all_that_its_queues_hold),
		T(capabilities_that_the_queues_do_not_hold_are_einval),
		T(other_transports_are_not_supported),
		T(other_transports_pass_their_type_on),
		T(address_handle_comes_with_its_number),
		T(address_handle_is_destroyed_by_ioctl),
		T(groups_are_joined_and_left),
		T(qp_with_a_shared_queue_has_none_of_its_own),
		T(srq_is_created_and_destroyed),
		T(srq_that_cannot_be_is_refused),
		T(cq_is_moderated),
		T(srq_is_armed_and_asked),
		T(srq_is_resized),
		T(xrc_srq_is_made_of_domain_and_cq),
		T(xrc_domain_is_opened_by_its_file),
		T(xrc_sender_has_no_receive_queue),
		T(xrc_target_has_a_domain_and_a_handle_of_its_own),
		T(srq_commands_of_old),
		T(driver_part_of_create_qp_obeys_its_header),
		T(qp_whose_answer_cannot_be_written_is_not_created),
		T(destroyed_qp_reports_the_events_that_were_read),
		T(every_attribute_of_modify_reaches_the_backend),
		T(rate_limit_needs_the_extended_modify),
		T(query_is_the_inverse_of_modify),
		T(post_without_work_requests_rings_the_queue),
		T(notify_of_a_cq_arms_it),
		T(work_requests_do_not_travel_by_write),
		T(write_whose_header_and_length_differ_rings_nothing),
		T(ring_by_ioctl_is_the_same_ring),
		T(legacy_write_splits_core_and_driver_parts),
		T(extended_write_has_lengths_of_its_own),
		T(commands_without_an_operation_are_eopnotsupp),
		T(numbers_that_name_no_command_are_einval),
		T(cq_and_qp_can_be_created_by_write_commands_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
