// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rdma_cm as a program sees it: write(2) in, errno, answers and events out. */
#include "ucma_calls.h"

/* ---- bad input ------------------------------------------------------------
 */

static void test_what_is_no_command_is_refused(void **state)
{
	struct rdma_ucm_cmd_hdr hdr = {0, 0, 0};
	uint32_t channel = fake_channel(ch1);

	(void)state;
	assert_int_equal(ucma_write(&fake_ops, ch1, channel, &hdr, 7), -EINVAL);
	assert_int_equal(ucma_write(&fake_ops, ch1, channel,
				    (void *)(uintptr_t)NOWHERE, sizeof(hdr)),
			 -EFAULT);
	hdr.in = 1;
	assert_int_equal(ucma_write(&fake_ops, ch1, channel, &hdr, sizeof(hdr)),
			 -EINVAL);
	hdr = (struct rdma_ucm_cmd_hdr){23, 0, 0};
	assert_int_equal(ucma_write(&fake_ops, ch1, channel, &hdr, sizeof(hdr)),
			 -EINVAL);
	hdr = (struct rdma_ucm_cmd_hdr){RDMA_USER_CM_CMD_GET_OPTION, 0, 0};
	assert_int_equal(ucma_write(&fake_ops, ch1, channel, &hdr, sizeof(hdr)),
			 -ENOSYS);
}

static void test_short_commands_are_refused(void **state)
{
	uint8_t zero[512] = {0};
	uint32_t cmd;

	(void)state;
	for (cmd = 0; cmd <= RDMA_USER_CM_CMD_JOIN_MCAST; cmd++)
		if (cmd != RDMA_USER_CM_CMD_GET_OPTION)
			assert_int_equal(command(ch1, cmd, zero, 3, 512),
					 EINVAL);
}

static void test_answers_need_room_and_memory(void **state)
{
	struct rdma_ucm_create_id cmd = {.response = NOWHERE,
					 .ps = RDMA_PS_TCP};
	struct rdma_ucm_get_event get = {.response = NOWHERE};
	struct rdma_ucm_query query = {.response = NOWHERE, .option = 7};
	struct cma_objects n;
	uint32_t id;

	(void)state;
	assert_int_equal(command(ch1, RDMA_USER_CM_CMD_CREATE_ID, &cmd,
				 sizeof(cmd), 3),
			 ENOSPC);
	assert_int_equal(command(ch1, RDMA_USER_CM_CMD_CREATE_ID, &cmd,
				 sizeof(cmd), 4),
			 EFAULT);
	cma_count(fake.cma, &n);
	assert_int_equal(n.ids, 0);
	/* An event that cannot be told stays. */
	id = create(ch1, RDMA_PS_TCP);
	assert_int_equal(resolve4(ch1, id, "127.0.0.1", 1), 0);
	assert_int_equal(command(ch1, RDMA_USER_CM_CMD_GET_EVENT, &get,
				 sizeof(get), sizeof(ev)),
			 EFAULT);
	assert_int_equal(event(ch1), ADDR_RESOLVED);
	query.id = id;
	assert_int_equal(command(ch1, RDMA_USER_CM_CMD_QUERY, &query,
				 sizeof(query), 0),
			 ENOSYS);
}

static void test_ids_belong_to_their_channel(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(destroy(ch2, id, NULL), EINVAL);
	assert_int_equal(destroy(ch1, 12345, NULL), ENOENT);
	assert_int_equal(destroy(ch1, 0xffffffff, NULL), ENOENT);
	assert_int_equal(destroy(ch1, id, NULL), 0);
	assert_int_equal(destroy(ch1, id, NULL), ENOENT);
}

static void test_port_spaces(void **state)
{
	struct rdma_ucm_create_id cmd = {.ps = 0x107};
	struct rdma_ucm_create_id_resp resp;

	(void)state;
	assert_int_equal(ASK(ch1, CREATE_ID, cmd, resp), EINVAL);
	create(ch1, RDMA_PS_UDP);
	create(ch1, RDMA_PS_IPOIB);
	create(ch1, RDMA_PS_IB);
}

static void test_calls_out_of_order(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(route(ch1, id), EINVAL);
	assert_int_equal(connect_id(ch1, id, 1, 0), EINVAL);
	assert_int_equal(accept_id(ch1, id, 1, 0), EINVAL);
	assert_int_equal(reject_id(ch1, id, 0, 0), EINVAL);
	assert_int_equal(disconnect_id(ch1, id), EINVAL);
	assert_int_equal(bind4(ch1, id, "127.0.0.1", 0), 0);
	assert_int_equal(bind4(ch1, id, "127.0.0.1", 0), EINVAL);
	assert_int_equal(route(ch1, id), EINVAL);
	assert_int_equal(listen_on(ch1, id, 1), 0);
	assert_int_equal(listen_on(ch1, id, 1), EINVAL);
	assert_int_equal(resolve4(ch1, id, "127.0.0.1", 1), EINVAL);
}

/* ---- addresses and ports ----------------------------------------------------
 */

static void test_addresses_that_are_not_ours(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_TCP);
	struct sockaddr_in in = ip4("127.0.0.1", 0);

	(void)state;
	assert_int_equal(bind4(ch1, id, "192.0.2.1", 0), EADDRNOTAVAIL);
	assert_int_equal(bind_any(ch1, id, &in, 8), EINVAL);
	in.sin_family = 77;
	assert_int_equal(bind_any(ch1, id, &in, sizeof(in)), EINVAL);
	assert_int_equal(resolve4(ch1, id, "192.0.2.1", 1), 0);
	assert_int_equal(event(ch1), ADDR_ERROR);
	assert_int_equal(ev.status, (uint32_t)-EHOSTUNREACH);
}

static void test_a_port_is_taken_once(void **state)
{
	uint32_t a = create(ch1, RDMA_PS_TCP), b = create(ch1, RDMA_PS_TCP);
	uint32_t u = create(ch1, RDMA_PS_UDP);

	(void)state;
	assert_int_equal(bind4(ch1, a, "127.0.0.1", 7000), 0);
	assert_int_equal(bind4(ch1, b, "127.0.0.1", 7000), EADDRINUSE);
	assert_int_equal(bind4(ch1, b, "0.0.0.0", 7000), EADDRNOTAVAIL);
	assert_int_equal(bind4(ch1, b, "10.0.0.2", 7000), 0);
	assert_int_equal(bind4(ch1, u, "127.0.0.1", 7000), 0);
	assert_int_equal(destroy(ch1, a, NULL), 0);
	a = create(ch1, RDMA_PS_TCP);
	assert_int_equal(bind4(ch1, a, "127.0.0.1", 7000), 0);
}

static void test_a_port_can_be_shared_until_somebody_listens(void **state)
{
	struct rdma_ucm_set_option opt = {.optname = RDMA_OPTION_ID_REUSEADDR,
					  .optlen = sizeof(int)};
	uint32_t id[2];
	int i, one = 1;

	(void)state;
	opt.optval = (uintptr_t)&one;
	for (i = 0; i < 2; i++) {
		id[i] = opt.id = create(ch1, RDMA_PS_TCP);
		assert_int_equal(RUN(ch1, SET_OPTION, opt), 0);
		assert_int_equal(bind4(ch1, id[i], "127.0.0.1", 7000), 0);
	}
	assert_int_equal(listen_on(ch1, id[0], 0), EADDRINUSE);
	destroy(ch1, id[1], NULL);
	assert_int_equal(listen_on(ch1, id[0], 0), 0);
	opt.id = create(ch1, RDMA_PS_TCP);
	assert_int_equal(RUN(ch1, SET_OPTION, opt), 0);
	assert_int_equal(bind4(ch1, opt.id, "127.0.0.1", 7000), EADDRINUSE);
}

static void test_low_ports_are_for_the_privileged(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bind4(ch1, id, "127.0.0.1", 80), EACCES);
	fake.privileged = true;
	assert_int_equal(bind4(ch1, id, "127.0.0.1", 80), 0);
}

static uint16_t own_port(int fd, uint32_t id)
{
	struct rdma_ucm_query cmd = {.id = id,
				     .option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_query_addr_resp resp;
	struct sockaddr_in in;

	assert_int_equal(ASK(fd, QUERY, cmd, resp), 0);
	assert_int_equal(resp.src_size, sizeof(in));
	memcpy(&in, &resp.src_addr, sizeof(in));
	return ntohs(in.sin_port);
}

static void test_free_ports_are_given_out(void **state)
{
	uint32_t a = create(ch1, RDMA_PS_TCP), b = create(ch1, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(bind4(ch1, a, "127.0.0.1", 0), 0);
	assert_int_equal(listen_on(ch1, b, 0), 0);
	assert_true(own_port(ch1, a) >= 32768);
	assert_true(own_port(ch1, b) >= 32768);
	assert_int_not_equal(own_port(ch1, a), own_port(ch1, b));
}

static void test_both_families_on_one_port(void **state)
{
	struct sockaddr_in6 any = ip6("::", 7000);
	struct rdma_ucm_set_option opt = {.optname = RDMA_OPTION_ID_AFONLY,
					  .optlen = sizeof(int)};
	uint32_t id = create(ch1, RDMA_PS_TCP);
	int one = 1;

	(void)state;
	opt.id = id;
	opt.optval = (uintptr_t)&one;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), 0);
	assert_int_equal(bind_any(ch1, id, &any, sizeof(any)), 0);
	listener(ch1, "0.0.0.0", 7000);
	assert_int_equal(listen_on(ch1, id, 0), 0);
}

static void test_the_old_forms_for_ip(void **state)
{
	struct rdma_ucm_resolve_ip res = {.id = create(ch1, RDMA_PS_TCP)};
	struct rdma_ucm_bind_ip bind = {.id = create(ch1, RDMA_PS_TCP)};
	struct sockaddr_in in = ip4("127.0.0.1", 7000);

	(void)state;
	assert_int_equal(RUN(ch1, BIND_IP, bind), EINVAL);
	memcpy(&bind.addr, &in, sizeof(in));
	assert_int_equal(RUN(ch1, BIND_IP, bind), 0);
	assert_int_equal(own_port(ch1, bind.id), 7000);
	assert_int_equal(RUN(ch1, RESOLVE_IP, res), EINVAL);
	memcpy(&res.dst_addr, &in, sizeof(in));
	assert_int_equal(RUN(ch1, RESOLVE_IP, res), 0);
	assert_int_equal(event(ch1), ADDR_RESOLVED);
}

/* ---- connections
 * -------------------------------------------------------------- */

static void test_a_connection(void **state)
{
	uint32_t active, passive;
	struct rdma_ucm_init_qp_attr cmd = {.qp_state = RNIC_RTR};
	struct ib_uverbs_qp_attr a, b;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	active = connected(&passive);
	assert_int_equal(ev.uid, 0x9000 + passive);
	cmd.id = active;
	assert_int_equal(ASK(ch2, INIT_QP_ATTR, cmd, a), 0);
	cmd.id = passive;
	assert_int_equal(ASK(ch1, INIT_QP_ATTR, cmd, b), 0);
	assert_int_equal(a.dest_qp_num, 0x22);
	assert_int_equal(b.dest_qp_num, 0x11);
	cmd.qp_state = RNIC_ERR + 1;
	assert_int_equal(ASK(ch1, INIT_QP_ATTR, cmd, b), EINVAL);
	assert_int_equal(disconnect_id(ch2, active), 0);
	assert_int_equal(event(ch1), DISCONNECTED);
	assert_int_equal(event(ch2), DISCONNECTED);
	assert_int_equal(disconnect_id(ch1, passive), 0);
	cma_tick(fake.cma, fake.now + SEC);
	assert_int_equal(event(ch1), TIMEWAIT_EXIT);
	assert_int_equal(event(ch2), TIMEWAIT_EXIT);
}

static void test_psns_agree_at_every_time(void **state)
{
	struct rdma_ucm_init_qp_attr cmd = {.qp_state = RNIC_RTR};
	struct ib_uverbs_qp_attr before, rts;
	uint32_t id, passive;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	connect_id(ch2, id, 0x11, 0);
	event(ch1);
	cmd.id = passive = ev.id;
	/* librdmacm does so before it accepts. */
	assert_int_equal(ASK(ch1, INIT_QP_ATTR, cmd, before), 0);
	accept_id(ch1, passive, 0x22, 0);
	event(ch2);
	cmd.id = id;
	cmd.qp_state = RNIC_RTS;
	assert_int_equal(ASK(ch2, INIT_QP_ATTR, cmd, rts), 0);
	assert_int_equal(rts.sq_psn, before.rq_psn);
}

static void test_events_carry_parameters_and_private_data(void **state)
{
	uint32_t id, passive;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	id = resolved(ch2, RDMA_PS_TCP, "10.0.0.2", 7000);
	assert_int_equal(connect_id(ch2, id, 0x11, 56), 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	passive = ev.id;
	assert_int_equal(ev.param.conn.private_data_len, 56);
	assert_int_equal(ev.param.conn.private_data[55], 0x11);
	assert_int_equal(ev.param.conn.qp_num, 0x11);
	assert_int_equal(ev.param.conn.responder_resources, 5);
	assert_int_equal(ev.param.conn.initiator_depth, 3);
	assert_int_equal(ev.param.conn.retry_count, 7);
	assert_int_equal(ev.param.conn.rnr_retry_count, 6);
	assert_int_equal(accept_id(ch1, passive, 0x22, 196), 0);
	assert_int_equal(event(ch2), CONNECT_RESPONSE);
	assert_int_equal(ev.param.conn.private_data_len, 196);
	assert_int_equal(ev.param.conn.private_data[195], 0x22);
	assert_int_equal(ev.param.conn.qp_num, 0x22);
}

static void test_queries(void **state)
{
	struct rdma_ucm_query cmd = {.option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp rt;
	struct {
		uint32_t num_paths, reserved;
		struct ib_path_rec_data data[6];
	} path;
	struct cma_sockaddr_ib ib;
	struct sockaddr_in in;

	(void)state;
	cmd.id = resolved(ch2, RDMA_PS_TCP, "10.0.0.2", 7000);
	assert_int_equal(ASK(ch2, QUERY, cmd, addr), 0);
	assert_int_equal(be64toh(addr.node_guid), 0x1001);
	assert_int_equal(addr.port_num, 1);
	assert_int_equal(addr.pkey, 0xffff);
	memcpy(&in, &addr.dst_addr, sizeof(in));
	assert_int_equal(ntohl(in.sin_addr.s_addr), 0x0a000002);
	cmd.option = RDMA_USER_CM_QUERY_GID;
	assert_int_equal(ASK(ch2, QUERY, cmd, addr), 0);
	memcpy(&ib, &addr.dst_addr, sizeof(ib));
	assert_int_equal(ib.sib_family, CMA_AF_IB);
	assert_int_equal(ib.sib_addr[15], 2);
	assert_int_equal(be64toh(ib.sib_sid),
			 RNIC_CM_SERVICE(RDMA_PS_TCP, 7000));
	cmd.option = RDMA_USER_CM_QUERY_PATH;
	assert_int_equal(ASK(ch2, QUERY, cmd, path), 0);
	assert_int_equal(path.num_paths, 1);
	assert_int_equal(path.data[0].flags, 0x2b);
	/* Bytes 40 and 42 of a path record: the LIDs. */
	assert_int_equal(((uint8_t *)path.data[0].path_rec)[41], 2);
	assert_int_equal(ASK(ch2, QUERY_ROUTE, cmd, rt), 0);
	assert_int_equal(rt.num_paths, 1);
	assert_int_equal(ntohs(rt.ib_route[0].dlid), 2);
	assert_int_equal(rt.ib_route[0].mtu, RNIC_MTU_4096);
	/* Older librdmacms have less room. */
	assert_int_equal(command(ch2, RDMA_USER_CM_CMD_QUERY_ROUTE, &cmd,
				 sizeof(cmd), sizeof(rt) - 8),
			 0);
	assert_int_equal(command(ch2, RDMA_USER_CM_CMD_QUERY_ROUTE, &cmd,
				 sizeof(cmd), sizeof(rt) - 12),
			 ENOSPC);
}

static void test_ethernet_paths_are_global(void **state)
{
	struct rdma_ucm_init_qp_attr cmd = {.qp_state = RNIC_RTR};
	struct ib_uverbs_qp_attr a;
	uint32_t passive;

	(void)state;
	fake.link_layer = RNIC_ETHERNET;
	listener(ch1, "10.0.0.1", 7000);
	cmd.id = resolved(ch2, RDMA_PS_TCP, "10.0.0.1", 7000);
	assert_int_equal(connect_id(ch2, cmd.id, 0x11, 0), 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	passive = ev.id;
	cmd.id = passive;
	assert_int_equal(ASK(ch1, INIT_QP_ATTR, cmd, a), 0);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.ah_attr.grh.sgid_index, 1);
	assert_int_equal(a.ah_attr.grh.dgid[15], 1);
	assert_int_equal(a.ah_attr.grh.dgid[12], 10);
}

static void test_nobody_listens(void **state)
{
	uint32_t id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);

	(void)state;
	assert_int_equal(connect_id(ch2, id, 1, 0), 0);
	assert_int_equal(event(ch2), REJECTED);
	assert_int_equal(ev.status, RNIC_CM_INVALID_SERVICE_ID);
	/* Another port space is another port; so is a bound one. */
	id = create(ch1, RDMA_PS_TCP);
	bind4(ch1, id, "127.0.0.1", 7001);
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7001);
	connect_id(ch2, id, 1, 0);
	assert_int_equal(event(ch2), REJECTED);
	/* Another address, too. */
	listener(ch1, "10.0.0.2", 7002);
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7002);
	connect_id(ch2, id, 1, 0);
	assert_int_equal(event(ch2), REJECTED);
}

static void test_a_reject(void **state)
{
	uint32_t id;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	connect_id(ch2, id, 1, 0);
	event(ch1);
	id = ev.id;
	assert_int_equal(reject_id(ch1, id, 149, 0), EINVAL);
	assert_int_equal(reject_id(ch1, id, 5, 29), EINVAL);
	assert_int_equal(reject_id(ch1, id, 5, 0), 0);
	assert_int_equal(event(ch2), REJECTED);
	assert_int_equal(ev.status, 28);
	assert_string_equal((char *)ev.param.conn.private_data, "sorry");
	assert_int_equal(reject_id(ch1, id, 0, 0), EINVAL);
}

static void test_private_data_too_long(void **state)
{
	uint32_t id;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	assert_int_equal(connect_id(ch2, id, 1, 57), EINVAL);
	assert_int_equal(connect_id(ch2, id, 1, 56), 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	/* Who cannot answer has answered. */
	assert_int_equal(accept_id(ch1, ev.id, 1, 197), EINVAL);
	assert_int_equal(event(ch2), REJECTED);
}

static void test_a_full_backlog_drops(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_TCP), a, b;

	(void)state;
	bind4(ch1, id, "0.0.0.0", 7000);
	listen_on(ch1, id, 1);
	a = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	b = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	connect_id(ch2, a, 1, 0);
	connect_id(ch2, b, 2, 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	assert_int_equal(event(ch1), NO_EVENT);
	assert_int_equal(event(ch2), NO_EVENT);
	/* It asks again, and there is room. */
	fake.now += 5 * SEC;
	cma_tick(fake.cma, fake.now);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	assert_int_equal(ev.param.conn.qp_num, 2);
}

static void test_a_peer_that_never_answers_is_unreachable(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_TCP);
	int i;

	(void)state;
	bind4(ch1, id, "0.0.0.0", 7000);
	listen_on(ch1, id, 1);
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	connect_id(ch2, id, 1, 0);
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	connect_id(ch2, id, 2, 0);
	for (i = 0; i < 80; i++)
		cma_tick(fake.cma, fake.now += SEC);
	assert_int_equal(event(ch2), UNREACHABLE);
	assert_int_equal(ev.status, (uint32_t)-ETIMEDOUT);
}

static void test_destroy_counts_and_drops_events(void **state)
{
	uint32_t id = create(ch1, RDMA_PS_TCP), n;

	(void)state;
	resolve4(ch1, id, "127.0.0.1", 7000);
	assert_int_equal(event(ch1), ADDR_RESOLVED);
	route(ch1, id);
	assert_true(fake.readable[fake_channel(ch1)]);
	assert_int_equal(destroy(ch1, id, &n), 0);
	assert_int_equal(n, 1);
	assert_false(fake.readable[fake_channel(ch1)]);
	assert_int_equal(event(ch1), NO_EVENT);
}

static void test_a_listener_takes_its_requests_with_it(void **state)
{
	uint32_t id = listener(ch1, "0.0.0.0", 7000), n;

	(void)state;
	connect_id(ch2, resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000), 1, 0);
	assert_int_equal(destroy(ch1, id, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(event(ch2), REJECTED);
}

static void test_a_channel_that_is_closed_hangs_up(void **state)
{
	uint32_t passive;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	connected(&passive);
	cma_close(fake.cma, fake.now, fake_channel(ch1));
	assert_int_equal(event(ch2), DISCONNECTED);
}

static void test_ids_migrate_with_their_events(void **state)
{
	struct rdma_ucm_migrate_id cmd = {.fd = ch1};
	struct rdma_ucm_migrate_resp resp;
	uint32_t id = create(ch1, RDMA_PS_TCP);

	(void)state;
	resolve4(ch1, id, "127.0.0.1", 7000);
	event(ch1);
	route(ch1, id);
	cmd.id = id;
	cmd.fd = 3;
	assert_int_equal(ASK(ch2, MIGRATE_ID, cmd, resp), ENOENT);
	cmd.fd = ch1;
	assert_int_equal(ASK(ch2, MIGRATE_ID, cmd, resp), 0);
	assert_int_equal(resp.events_reported, 1);
	assert_false(fake.readable[fake_channel(ch1)]);
	assert_int_equal(event(ch1), NO_EVENT);
	assert_int_equal(event(ch2), ROUTE_RESOLVED);
	assert_int_equal(destroy(ch1, id, NULL), EINVAL);
	assert_int_equal(destroy(ch2, id, NULL), 0);
}

static void test_ipv6(void **state)
{
	struct sockaddr_in6 any = ip6("::", 7000), lo = ip6("::1", 7000), got;
	uint32_t id = create(ch1, RDMA_PS_TCP);
	struct rdma_ucm_query cmd = {.option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_query_addr_resp addr;

	(void)state;
	assert_int_equal(bind_any(ch1, id, &any, sizeof(any)), 0);
	assert_int_equal(listen_on(ch1, id, 0), 0);
	id = create(ch2, RDMA_PS_TCP);
	assert_int_equal(resolve_to(ch2, id, &lo, sizeof(lo)), 0);
	event(ch2);
	route(ch2, id);
	event(ch2);
	assert_int_equal(connect_id(ch2, id, 1, 0), 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	cmd.id = ev.id;
	assert_int_equal(ASK(ch1, QUERY, cmd, addr), 0);
	memcpy(&got, &addr.src_addr, sizeof(got));
	assert_memory_equal(&got, &lo, sizeof(lo));
	/* It hears IPv4, too, unless it was told not to. */
	id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);
	connect_id(ch2, id, 1, 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
}

static void test_ib_addresses(void **state)
{
	struct cma_sockaddr_ib ib = {
		.sib_family = CMA_AF_IB,
		.sib_sid = htobe64(0x10013f0042),
		.sib_sid_mask = ~0ull,
	};
	uint32_t id = create(ch1, RDMA_PS_IB);

	(void)state;
	assert_int_equal(bind_any(ch1, id, &ib, sizeof(ib)), 0);
	assert_int_equal(listen_on(ch1, id, 0), 0);
	id = create(ch2, RDMA_PS_IB);
	ib.sib_addr[0] = 0xfe;
	ib.sib_addr[1] = 0x80;
	ib.sib_addr[15] = 9;
	assert_int_equal(resolve_to(ch2, id, &ib, sizeof(ib)), 0);
	assert_int_equal(event(ch2), ADDR_ERROR);
	ib.sib_addr[15] = 2;
	assert_int_equal(resolve_to(ch2, id, &ib, sizeof(ib)), 0);
	assert_int_equal(event(ch2), ADDR_RESOLVED);
	route(ch2, id);
	event(ch2);
	assert_int_equal(connect_id(ch2, id, 0x11, 92), 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	assert_int_equal(ev.param.conn.private_data_len, 92);
}

static void test_options(void **state)
{
	struct rdma_ucm_set_option opt = {.id = create(ch1, RDMA_PS_TCP)};
	uint8_t byte = 32;

	(void)state;
	opt.optval = (uintptr_t)&byte;
	opt.optlen = 1;
	opt.optname = RDMA_OPTION_ID_TOS;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), 0);
	opt.optname = RDMA_OPTION_ID_ACK_TIMEOUT;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), EINVAL);
	byte = 20;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), 0);
	opt.optlen = 2;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), EINVAL);
	opt.optlen = 1 << 20;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), EINVAL);
	opt.optlen = 1;
	opt.optval = NOWHERE;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), EFAULT);
	opt.optval = (uintptr_t)&byte;
	opt.optname = 77;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), ENOSYS);
	opt.level = 2;
	assert_int_equal(RUN(ch1, SET_OPTION, opt), ENOSYS);
}

static void test_a_thousand_connections_leave_nothing(void **state)
{
	struct cma_objects n;
	uint32_t a, p;
	int i;

	(void)state;
	listener(ch1, "0.0.0.0", 7000);
	for (i = 0; i < 1000; i++) {
		a = connected(&p);
		destroy(ch2, a, NULL);
		assert_int_equal(event(ch1), DISCONNECTED);
		destroy(ch1, p, NULL);
		fake.now += SEC;
		cma_tick(fake.cma, fake.now);
	}
	cma_count(fake.cma, &n);
	assert_int_equal(n.ids, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_what_is_no_command_is_refused),
		T(test_short_commands_are_refused),
		T(test_answers_need_room_and_memory),
		T(test_ids_belong_to_their_channel),
		T(test_port_spaces),
		T(test_calls_out_of_order),
		T(test_addresses_that_are_not_ours),
		T(test_a_port_is_taken_once),
		T(test_a_port_can_be_shared_until_somebody_listens),
		T(test_low_ports_are_for_the_privileged),
		T(test_free_ports_are_given_out),
		T(test_both_families_on_one_port),
		T(test_the_old_forms_for_ip),
		T(test_a_connection),
		T(test_psns_agree_at_every_time),
		T(test_events_carry_parameters_and_private_data),
		T(test_queries),
		T(test_ethernet_paths_are_global),
		T(test_nobody_listens),
		T(test_a_reject),
		T(test_private_data_too_long),
		T(test_a_full_backlog_drops),
		T(test_a_peer_that_never_answers_is_unreachable),
		T(test_destroy_counts_and_drops_events),
		T(test_a_listener_takes_its_requests_with_it),
		T(test_a_channel_that_is_closed_hangs_up),
		T(test_ids_migrate_with_their_events),
		T(test_ipv6),
		T(test_ib_addresses),
		T(test_options),
		T(test_a_thousand_connections_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
