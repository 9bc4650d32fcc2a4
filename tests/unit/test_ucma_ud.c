// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rdma_cm for datagrams: services found by SIDR, multicast groups. */
#include "ucma_calls.h"

static int join_with(int fd, uint32_t id, const void *addr, uint16_t size,
		     uint16_t flags, uint32_t *group)
{
	struct rdma_ucm_join_mcast cmd = {.id = id,
					  .uid = 0x7777,
					  .addr_size = size,
					  .join_flags = flags};
	struct rdma_ucm_create_id_resp resp = {0};
	int err;

	memcpy(&cmd.addr, addr, size);
	err = ASK(fd, JOIN_MCAST, cmd, resp);
	*group = resp.id;
	return err;
}

static int join4(int fd, uint32_t id, const char *ip, uint32_t *group)
{
	struct sockaddr_in in = ip4(ip, 0);

	return join_with(fd, id, &in, sizeof(in), 0, group);
}

static int join6(int fd, uint32_t id, const char *ip, uint32_t *group)
{
	struct sockaddr_in6 in = ip6(ip, 0);

	return join_with(fd, id, &in, sizeof(in), 0, group);
}

static int join_gid(int fd, uint32_t id, const char *gid, uint32_t *group)
{
	struct cma_sockaddr_ib ib = {.sib_family = CMA_AF_IB};

	inet_pton(AF_INET6, gid, ib.sib_addr);
	return join_with(fd, id, &ib, sizeof(ib), 0, group);
}

static int leave(int fd, uint32_t group, uint32_t *events)
{
	struct rdma_ucm_destroy_id cmd = {.id = group};
	struct rdma_ucm_destroy_id_resp resp = {0};
	int err = ASK(fd, LEAVE_MCAST, cmd, resp);

	if (events)
		*events = resp.events_reported;
	return err;
}

static uint32_t bound(int fd, uint16_t ps)
{
	uint32_t id = create(fd, ps);

	assert_int_equal(bind4(fd, id, "127.0.0.1", 0), 0);
	return id;
}

static void assert_gid(const uint8_t *gid, const char *wanted)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid, text, sizeof(text));
	assert_string_equal(text, wanted);
}

/* The group that ev tells of. */
static void assert_joined(const char *mgid)
{
	assert_int_equal(event(ch1), MULTICAST_JOIN);
	assert_int_equal(ev.status, 0);
	assert_int_equal(ev.uid, 0x7777);
	assert_int_equal(ev.param.ud.qp_num, 0xffffff);
	assert_int_equal(ev.param.ud.ah_attr.is_global, 1);
	assert_int_equal(ev.param.ud.ah_attr.port_num, 1);
	assert_gid(ev.param.ud.ah_attr.grh.dgid, mgid);
}

/* ---- services ------------------------------------------------------------ */

static void test_datagram_services(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_UDP), req;

	(void)state;
	bind4(ch1, id, "0.0.0.0", 7000);
	listen_on(ch1, id, 0);
	id = resolved(ch2, RDMA_PS_UDP, "127.0.0.1", 7000);
	assert_int_equal(connect_id(ch2, id, 0x11, 181), EINVAL);
	assert_int_equal(connect_id(ch2, id, 0x11, 180), 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	req = ev.id;
	assert_int_equal(ev.param.ud.private_data_len, 180);
	assert_int_equal(accept_id(ch1, req, 0x22, 136), 0);
	assert_int_equal(event(ch2), ESTABLISHED);
	assert_int_equal(ev.param.ud.qp_num, 0x22);
	assert_int_equal(ev.param.ud.qkey, 0x01234567);
	assert_int_equal(ev.param.ud.ah_attr.dlid, 1);
	/* A rejected one. */
	id = resolved(ch2, RDMA_PS_UDP, "127.0.0.1", 7000);
	connect_id(ch2, id, 0x11, 0);
	event(ch1);
	assert_int_equal(reject_id(ch1, ev.id, 5, 0), 0);
	assert_int_equal(event(ch2), UNREACHABLE);
	assert_int_equal(ev.status, RNIC_CM_SIDR_REJECT);
}

static void test_a_service_of_the_other_kind_is_none(void **state)
{
	uint32_t id;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	id = resolved(ch2, RDMA_PS_UDP, "127.0.0.1", 7000);
	assert_int_equal(connect_id(ch2, id, 0x11, 0), 0);
	assert_int_equal(event(ch2), UNREACHABLE);
	assert_int_equal(ev.status, RNIC_CM_SIDR_UNSUPPORTED);
}

static void test_the_qkey_is_the_port_spaces(void **state)
{
	struct rdma_ucm_init_qp_attr cmd = {.qp_state = RNIC_INIT};
	struct ib_uverbs_qp_attr a;

	(void)state;
	cmd.id = bound(ch1, RDMA_PS_UDP);
	assert_int_equal(ASK(ch1, INIT_QP_ATTR, cmd, a), 0);
	assert_int_equal(a.qkey, 0x01234567);
	cmd.id = bound(ch1, RDMA_PS_IPOIB);
	assert_int_equal(ASK(ch1, INIT_QP_ATTR, cmd, a), 0);
	assert_int_equal(a.qkey, 0x0b1b);
}

/* ---- multicast ----------------------------------------------------------- */

static void test_groups_of_infiniband(void **state)
{
	uint32_t id = bound(ch1, RDMA_PS_UDP), g;

	(void)state;
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), 0);
	assert_joined("ff12:4001:ffff::f01:203");
	assert_int_equal(ev.id, g);
	assert_int_equal(ev.param.ud.qkey, 0x01234567);
	assert_in_range(ev.param.ud.ah_attr.dlid, 0xc000, 0xfffe);
	assert_int_equal(join6(ch1, id, "ff0e::1:99", &g), 0);
	assert_joined("ff12:6001:ffff::1:99");
	assert_int_equal(join6(ch1, id, "ff12:a01b::5", &g), 0);
	assert_joined("ff12:a01b::5");
	assert_int_equal(join_gid(ch1, id, "ff12::7", &g), 0);
	assert_joined("ff12::7");
	/* IPoIB's groups are others. */
	id = bound(ch1, RDMA_PS_IPOIB);
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), 0);
	assert_joined("ff12:401b:ffff::f01:203");
	assert_int_equal(ev.param.ud.qkey, 0x0b1b);
}

static void test_groups_of_ethernet(void **state)
{
	uint32_t id, g;

	(void)state;
	fake.link_layer = RNIC_ETHERNET;
	id = create(ch1, RDMA_PS_UDP);
	assert_int_equal(bind4(ch1, id, "10.0.0.1", 0), 0);
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), 0);
	assert_joined("::ffff:239.1.2.3");
	assert_int_equal(ev.param.ud.ah_attr.dlid, 0);
	assert_int_equal(ev.param.ud.ah_attr.grh.sgid_index, 1);
	assert_int_equal(join6(ch1, id, "ff0e::1:99", &g), 0);
	assert_joined("ff0e::1:99");
	assert_int_equal(join4(ch1, id, "0.0.0.0", &g), EINVAL);
}

static void test_members_agree_on_the_lid(void **state)
{
	uint32_t id = bound(ch1, RDMA_PS_UDP), g;
	uint16_t mlid;

	(void)state;
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), 0);
	assert_joined("ff12:4001:ffff::f01:203");
	mlid = ev.param.ud.ah_attr.dlid;
	id = create(ch2, RDMA_PS_UDP);
	assert_int_equal(bind4(ch2, id, "10.0.0.2", 0), 0);
	assert_int_equal(join4(ch2, id, "239.1.2.3", &g), 0);
	assert_int_equal(event(ch2), MULTICAST_JOIN);
	assert_int_equal(ev.param.ud.ah_attr.dlid, mlid);
}

static void test_a_group_without_a_name_gets_one(void **state)
{
	uint32_t id = bound(ch1, RDMA_PS_UDP), g;
	uint8_t first[16];

	(void)state;
	assert_int_equal(join4(ch1, id, "0.0.0.0", &g), 0);
	assert_int_equal(event(ch1), MULTICAST_JOIN);
	memcpy(first, ev.param.ud.ah_attr.grh.dgid, 16);
	assert_int_equal(first[0], 0xff);
	assert_int_equal(join4(ch1, id, "0.0.0.0", &g), 0);
	assert_int_equal(event(ch1), MULTICAST_JOIN);
	assert_memory_not_equal(ev.param.ud.ah_attr.grh.dgid, first, 16);
}

static void test_what_is_no_group_is_an_error(void **state)
{
	uint32_t id = bound(ch1, RDMA_PS_UDP), g;

	(void)state;
	assert_int_equal(join_gid(ch1, id, "fe80::7", &g), 0);
	assert_int_equal(event(ch1), MULTICAST_ERROR);
	assert_int_equal(ev.status, (uint32_t)-EINVAL);
	assert_int_equal(ev.uid, 0x7777);
}

static void test_who_may_join(void **state)
{
	struct sockaddr_in in = ip4("239.1.2.3", 0);
	uint32_t id = bound(ch1, RDMA_PS_TCP), g;

	(void)state;
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), EINVAL);
	id = create(ch1, RDMA_PS_UDP);
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), EINVAL);
	id = bound(ch1, RDMA_PS_UDP);
	assert_int_equal(join4(ch2, id, "239.1.2.3", &g), EINVAL);
	assert_int_equal(join_with(ch1, id, &in, sizeof(in), 2, &g), EINVAL);
	assert_int_equal(join_with(ch1, id, &in, 4, 0, &g), EINVAL);
	assert_int_equal(join_with(ch1, id, &in, sizeof(in), 1, &g), 0);
	assert_int_equal(listen_on(ch1, id, 0), 0);
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), EINVAL);
}

static void test_a_group_as_destination_has_a_source(void **state)
{
	struct rdma_ucm_query cmd = {.option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_query_addr_resp r;
	struct sockaddr_in in;
	uint32_t g;

	(void)state;
	fake.link_layer = RNIC_ETHERNET;
	cmd.id = create(ch1, RDMA_PS_UDP);
	assert_int_equal(resolve4(ch1, cmd.id, "239.1.2.3", 7000), 0);
	assert_int_equal(event(ch1), ADDR_RESOLVED);
	assert_int_equal(ASK(ch1, QUERY, cmd, r), 0);
	memcpy(&in, &r.src_addr, sizeof(in));
	assert_int_equal(in.sin_addr.s_addr, htonl(0x0a000001));
	assert_int_not_equal(in.sin_port, 0);
	assert_int_equal(join4(ch1, cmd.id, "239.1.2.3", &g), 0);
	assert_joined("::ffff:239.1.2.3");
	/* The one that it is bound to. */
	cmd.id = create(ch1, RDMA_PS_UDP);
	assert_int_equal(bind4(ch1, cmd.id, "10.0.0.2", 0), 0);
	assert_int_equal(resolve4(ch1, cmd.id, "239.1.2.3", 7000), 0);
	assert_int_equal(event(ch1), ADDR_RESOLVED);
	assert_int_equal(ASK(ch1, QUERY, cmd, r), 0);
	assert_int_equal(be64toh(r.node_guid), 0x1001);
	/* Without addresses of its own, it is loopback. */
	fake.link_layer = RNIC_INFINIBAND;
	cmd.id = create(ch1, RDMA_PS_UDP);
	assert_int_equal(resolve4(ch1, cmd.id, "239.1.2.3", 7000), 0);
	assert_int_equal(event(ch1), ADDR_RESOLVED);
	assert_int_equal(ASK(ch1, QUERY, cmd, r), 0);
	memcpy(&in, &r.src_addr, sizeof(in));
	assert_int_equal(in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

static void test_leaving_counts_and_drops_events(void **state)
{
	uint32_t id = bound(ch1, RDMA_PS_UDP), g, h, n;

	(void)state;
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), 0);
	assert_joined("ff12:4001:ffff::f01:203");
	assert_int_equal(join4(ch1, id, "239.1.2.4", &h), 0);
	assert_int_equal(leave(ch2, g, NULL), EINVAL);
	assert_int_equal(leave(ch1, g, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(leave(ch1, g, NULL), ENOENT);
	assert_true(fake.readable[fake_channel(ch1)]);
	assert_int_equal(leave(ch1, h, &n), 0);
	assert_int_equal(n, 0);
	assert_false(fake.readable[fake_channel(ch1)]);
	assert_int_equal(event(ch1), NO_EVENT);
	/* The id counts what its groups count. */
	assert_int_equal(destroy(ch1, id, &n), 0);
	assert_int_equal(n, 1);
}

static void test_an_id_takes_its_groups_with_it(void **state)
{
	uint32_t id = bound(ch1, RDMA_PS_UDP), g, n;

	(void)state;
	assert_int_equal(join4(ch1, id, "239.1.2.3", &g), 0);
	assert_int_equal(destroy(ch1, id, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(leave(ch1, g, NULL), ENOENT);
	assert_int_equal(event(ch1), NO_EVENT);
}

static void test_groups_migrate_with_their_id(void **state)
{
	struct rdma_ucm_migrate_id cmd = {.fd = (uint32_t)ch1};
	struct rdma_ucm_migrate_resp resp;
	uint32_t g, n;

	(void)state;
	cmd.id = bound(ch1, RDMA_PS_UDP);
	assert_int_equal(join4(ch1, cmd.id, "239.1.2.3", &g), 0);
	assert_int_equal(ASK(ch2, MIGRATE_ID, cmd, resp), 0);
	assert_int_equal(event(ch1), NO_EVENT);
	assert_int_equal(event(ch2), MULTICAST_JOIN);
	assert_int_equal(leave(ch1, g, NULL), EINVAL);
	assert_int_equal(leave(ch2, g, &n), 0);
	assert_int_equal(n, 1);
}

static void test_the_old_form_joins_by_ip(void **state)
{
	struct rdma_ucm_join_ip_mcast cmd = {.uid = 0x7777};
	struct rdma_ucm_create_id_resp resp;
	struct sockaddr_in in = ip4("239.1.2.3", 0);

	(void)state;
	cmd.id = bound(ch1, RDMA_PS_UDP);
	memcpy(&cmd.addr, &in, sizeof(in));
	assert_int_equal(ASK(ch1, JOIN_IP_MCAST, cmd, resp), 0);
	assert_joined("ff12:4001:ffff::f01:203");
	assert_int_equal(ev.id, resp.id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_datagram_services),
		T(test_a_service_of_the_other_kind_is_none),
		T(test_the_qkey_is_the_port_spaces),
		T(test_groups_of_infiniband),
		T(test_groups_of_ethernet),
		T(test_members_agree_on_the_lid),
		T(test_a_group_without_a_name_gets_one),
		T(test_what_is_no_group_is_an_error),
		T(test_who_may_join),
		T(test_a_group_as_destination_has_a_source),
		T(test_leaving_counts_and_drops_events),
		T(test_an_id_takes_its_groups_with_it),
		T(test_groups_migrate_with_their_id),
		T(test_the_old_form_joins_by_ip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
