/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `sfnic devices`, `stat` and `down`: they look at a fabric that runs, and
 * never start one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/client.h"
#include "softnic/raw.h"
#include "softnic/sfnic.h"
#include "softnic/wire.h"

#define DOWN_TIMEOUT_MS 10000
#define DOWN_FORCE 1 /* .id of the request: also when it is in use */

/* ---- command lines -------------------------------------------------- */

/* Takes @flag out of argv, wherever it stands. */
static bool take_flag(int *argc, char **argv, const char *flag)
{
	bool found = false;
	int i, n = 1;

	for (i = 1; i < *argc; i++) {
		if (!strcmp(argv[i], flag))
			found = true;
		else
			argv[n++] = argv[i];
	}
	*argc = n;
	return found;
}

/* The directory of the fabric that the command line names. */
static bool parse(int argc, char **argv, char *dir, size_t len)
{
	struct sfnic_options opt;
	char msg[SFNIC_MSG_LEN];
	int at = sfnic_options_parse(&opt, argc, argv);

	if (at < 0)
		return false;
	if (at < argc || opt.given) {
		sfnic_say("%s does not take %s; see sfnic --help", argv[0],
			  at < argc ? argv[at] : "the options of run");
		return false;
	}
	if (opt.instance[0])
		unsetenv("SFNIC_DIR");
	if (!sfnic_runtime_dir(opt.instance, dir, len, msg, sizeof(msg)))
		return true;
	sfnic_say("%s", msg);
	return false;
}

static void say_none(void)
{
	sfnic_say("no fabric is running (start a program with sfnic run)");
}

/* ---- talking to the daemon ------------------------------------------ */

static int ask(int sock, uint32_t op, uint32_t id, struct sfnic_rsp *rsp)
{
	struct sfnic_req req = {.op = op, .id = id};
	int err;

	memset(rsp, 0, sizeof(*rsp));
	err = wire_send(sock, &req, sizeof(req), -1);
	if (!err)
		err = wire_recv(sock, rsp, sizeof(*rsp), NULL);
	return err ? err : rsp->err;
}

/* A fabric as it is seen by the commands that show it. */
struct fabric {
	const struct rnic *rnic;
	struct sfnic_rsp info;
	char dir[SFNIC_PATH_LEN];
};

static bool attach(int argc, char **argv, struct fabric *fabric)
{
	int sock, err;

	if (!parse(argc, argv, fabric->dir, sizeof(fabric->dir)))
		return false;
	sock = wire_connect(fabric->dir);
	if (sock < 0) {
		say_none();
		return false;
	}
	err = ask(sock, SFNIC_INFO, 0, &fabric->info);
	close(sock);
	if (err) {
		sfnic_say("the daemon does not answer: %s", strerror(err));
		return false;
	}
	/* Should it end just now, it is not started again for our sake. */
	unsetenv("SFNIC_OPTIONS");
	setenv("SFNIC_DIR", fabric->dir, 1);
	fabric->rnic = sfnic_rnic();
	return fabric->rnic;
}

/* ---- words ---------------------------------------------------------- */

#define WORD(table, i)                                                       \
	((i) < sizeof(table) / sizeof(*(table)) && (table)[i] ? (table)[i] : \
								"?")

static const char *const port_states[] = {"NOP",   "DOWN",   "INIT",
					  "ARMED", "ACTIVE", "DEFER"};
static const char *const qp_states[] = {"RESET", "INIT", "RTR", "RTS",
					"SQD",	 "SQE",	 "ERR"};
static const char *const qp_types[] = {
	[RNIC_QPT_RC] = "RC",
	[RNIC_QPT_UC] = "UC",
	[RNIC_QPT_UD] = "UD",
	[RNIC_QPT_RAW_PACKET] = "RAW",
	[RNIC_QPT_WQ] = "WQ",
	[RNIC_QPT_HASH] = "RSS",
	[RNIC_QPT_XRC_SEND] = "XRC_SEND",
	[RNIC_QPT_XRC_RECV] = "XRC_RECV",
};
static const char *const link_layers[] = {
	[RNIC_INFINIBAND] = "InfiniBand",
	[RNIC_ETHERNET] = "Ethernet",
};

/* The numbers of one struct rnic_counters by name. */
static const char *const counter_names[] = {
#define X(name) #name,
	RNIC_COUNTERS(X)
#undef X
};
#define COUNTERS (sizeof(counter_names) / sizeof(counter_names[0]))
_Static_assert(sizeof(struct rnic_counters) == COUNTERS * sizeof(uint64_t),
	       "a counter is a uint64_t");

static uint64_t counter(const struct rnic_counters *c, size_t i)
{
	uint64_t v;

	memcpy(&v, (const char *)c + i * sizeof(v), sizeof(v));
	return v;
}

/* ---- devices -------------------------------------------------------- */

static void guid_text(uint64_t guid, char text[20])
{
	snprintf(text, 20, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32) & 0xffff,
		 (unsigned int)(guid >> 16) & 0xffff,
		 (unsigned int)guid & 0xffff);
}

/* By what a peer finds the port: its LID, or its first address. */
static void address_text(const struct rnic_port_info *port, char *text,
			 size_t len)
{
	if (port->link_layer == RNIC_INFINIBAND)
		snprintf(text, len, "%u", port->lid);
	else if (!port->gids ||
		 !inet_ntop(AF_INET6, port->gid[port->gids > 1], text, len))
		snprintf(text, len, "-");
}

static void netdev_text(const struct fabric *fabric, const char *name,
			uint32_t port, char *text, size_t len)
{
	char path[SFNIC_PATH_LEN + 128];
	FILE *f;

	snprintf(path, sizeof(path),
		 "%s/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0",
		 fabric->dir, name, port);
	snprintf(text, len, "-");
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(text, len, f))
		text[strcspn(text, "\n")] = '\0';
	fclose(f);
}

static void show_port(const struct fabric *fabric,
		      const struct rnic_device_info *info, uint32_t dev,
		      uint32_t number)
{
	char guid[20], address[INET6_ADDRSTRLEN], netdev[32];
	struct rnic_port_info port;

	if (rnic_port_info(fabric->rnic, dev, number, &port))
		return;
	guid_text(port.guid, guid);
	address_text(&port, address, sizeof(address));
	netdev_text(fabric, info->name, number, netdev, sizeof(netdev));
	printf("%-12s %4u  %-19s  %-10s  %-24s  %-6s  %4u  %s\n", info->name,
	       number, guid, WORD(link_layers, port.link_layer), address,
	       WORD(port_states, port.state), 128u << port.mtu, netdev);
}

/* ---- whose address is whose, for rdma_cm ------------------------------ */

static void show_addr(void *arg, const char *ip, uint32_t dev)
{
	const struct fabric *fabric = arg;
	struct rnic_device_info info;

	if (!rnic_device_info(fabric->rnic, dev, &info))
		printf("%-40s %s\n", ip, info.name);
}

/* What nobody was given is the first device's, as daemon_cm.c has it. */
static void show_host_addrs(struct fabric *fabric, const char *addrs)
{
	struct ifaddrs *list, *i;
	char text[INET6_ADDRSTRLEN];
	const void *ip;

	if (getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

		if (family == AF_INET)
			ip = &((struct sockaddr_in *)i->ifa_addr)->sin_addr;
		else if (family == AF_INET6)
			ip = &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
		else
			continue;
		if (sfnic_addr_device(addrs, family, ip) < 0 &&
		    inet_ntop(family, ip, text, sizeof(text)))
			show_addr(fabric, text, 0);
	}
	freeifaddrs(list);
}

static void show_addrs(struct fabric *fabric)
{
	const char *addrs = strstr(fabric->info.info.options, " addr=");

	addrs = addrs ? addrs + strlen(" addr=") : "-";
	printf("\n%-40s %s\n", "ADDRESS", "DEVICE");
	sfnic_addr_each(addrs, show_addr, fabric);
	show_host_addrs(fabric, addrs);
}

int sfnic_devices(int argc, char **argv)
{
	struct rnic_device_info info;
	struct fabric fabric;
	uint32_t dev, port;

	if (!attach(argc, argv, &fabric))
		return 1;
	printf("%-12s %4s  %-19s  %-10s  %-24s  %-6s  %4s  %s\n", "DEVICE",
	       "PORT", "GUID", "LINK", "LID/GID", "STATE", "MTU", "NETDEV");
	for (dev = 0; !rnic_device_info(fabric.rnic, dev, &info); dev++)
		for (port = 1; port <= info.ports; port++)
			show_port(&fabric, &info, dev, port);
	show_addrs(&fabric);
	return 0;
}

/* ---- stat as text --------------------------------------------------- */

static void text_counters(const struct rnic_counters *c)
{
	size_t i;

	for (i = 0; i < COUNTERS; i++)
		if (counter(c, i))
			printf("  %-26s %" PRIu64 "\n", counter_names[i],
			       counter(c, i));
}

static void text_device(const struct rnic *r, uint32_t dev,
			const struct rnic_device_info *info)
{
	struct rnic_counters sum;
	struct rnic_objects n;
	uint32_t port;

	rnic_count_objects(r, dev, &n);
	printf("%s: %u PDs, %u MRs, %u CQs, %u SRQs, %u QPs", info->name, n.pds,
	       n.mrs, n.cqs, n.srqs, n.qps);
	if (n.xrcds)
		printf(", %u XRC domains", n.xrcds);
	printf("\n");
	for (port = 1; port <= info->ports; port++) {
		rnic_port_counters(r, dev, port, &sum);
		printf("%s port %u:\n", info->name, port);
		text_counters(&sum);
	}
}

static uint64_t waiting(uint64_t posted, uint64_t taken)
{
	return posted > taken ? posted - taken : 0;
}

static void text_qp(const char *name, const struct rnic_qp_info *qp)
{
	printf("QP %u of %s: %s %s", qp->qpn, name, WORD(qp_types, qp->type),
	       WORD(qp_states, qp->state));
	if (qp->state >= RNIC_RTR && qp->type != RNIC_QPT_UD)
		printf(" to QP %u", qp->dest_qpn);
	/* A queue that was never rung has no doorbell value yet. */
	printf(", %" PRIu64 " sends and %" PRIu64 " receives posted\n",
	       waiting(qp->sq_posted, qp->sq_head),
	       waiting(qp->rq_posted, qp->rq_head));
	text_counters(&qp->counters);
}

static void text_stat(const struct fabric *fabric)
{
	const struct rnic *r = fabric->rnic;
	struct rnic_device_info info;
	struct rnic_qp_info qp;
	uint32_t dev, it = 0;

	printf("daemon %d, %u processes, %" PRIu64 " KiB of %" PRIu64
	       " KiB in use\n%s\nrdma_cm: %u ids, %u of them listen\n",
	       fabric->info.info.pid, fabric->info.info.users,
	       fabric->info.info.arena_used >> 10,
	       fabric->info.info.arena_size >> 10, fabric->info.info.options,
	       fabric->info.info.cm.ids, fabric->info.info.cm.listeners);
	for (dev = 0; !rnic_device_info(r, dev, &info); dev++)
		text_device(r, dev, &info);
	while (rnic_qp_next(r, &it, &qp))
		if (!rnic_device_info(r, qp.dev, &info))
			text_qp(info.name, &qp);
}

/* ---- stat as JSON: every string is a plain word --------------------- */

static void json_counters(const struct rnic_counters *c)
{
	size_t i;

	printf("\"counters\": {");
	for (i = 0; i < COUNTERS; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", counter_names[i],
		       counter(c, i));
	printf("}");
}

static void json_device(const struct rnic *r, uint32_t dev,
			const struct rnic_device_info *info)
{
	struct rnic_counters sum;
	struct rnic_objects n;
	uint32_t port;

	rnic_count_objects(r, dev, &n);
	printf("%s\n  {\"name\": \"%s\", \"pds\": %u, \"mrs\": %u, "
	       "\"mws\": %u, \"dms\": %u, \"ahs\": %u, \"cqs\": %u, \"srqs\": "
	       "%u, \"qps\": %u, \"flows\": %u, "
	       "\"xrcds\": %u, \"ports\": [",
	       dev ? "," : "", info->name, n.pds, n.mrs, n.mws, n.dms, n.ahs,
	       n.cqs, n.srqs, n.qps, n.flows, n.xrcds);
	for (port = 1; port <= info->ports; port++) {
		rnic_port_counters(r, dev, port, &sum);
		printf("%s\n    {\"port\": %u, ", port > 1 ? "," : "", port);
		json_counters(&sum);
		printf("}");
	}
	printf("]}");
}

static void json_qp(bool first, const char *name, const struct rnic_qp_info *qp)
{
	printf("%s\n  {\"qpn\": %u, \"device\": \"%s\", \"type\": \"%s\", "
	       "\"state\": \"%s\", \"dest_qpn\": %u, "
	       "\"sq_head\": %" PRIu64 ", \"sq_posted\": %" PRIu64
	       ", \"rq_head\": %" PRIu64 ", \"rq_posted\": %" PRIu64 ", ",
	       first ? "" : ",", qp->qpn, name, WORD(qp_types, qp->type),
	       WORD(qp_states, qp->state), qp->dest_qpn, qp->sq_head,
	       qp->sq_posted, qp->rq_head, qp->rq_posted);
	json_counters(&qp->counters);
	printf("}");
}

static void json_stat(const struct fabric *fabric)
{
	const struct rnic *r = fabric->rnic;
	struct rnic_device_info info;
	struct rnic_qp_info qp;
	uint32_t dev, it = 0;
	bool first = true;

	printf("{\"daemon\": %d, \"processes\": %u, \"arena_used\": %" PRIu64
	       ", \"arena_size\": %" PRIu64 ", \"options\": \"%s\", "
	       "\"cm_ids\": %u, \"cm_listeners\": %u,\n\"devices\": [",
	       fabric->info.info.pid, fabric->info.info.users,
	       fabric->info.info.arena_used, fabric->info.info.arena_size,
	       fabric->info.info.options, fabric->info.info.cm.ids,
	       fabric->info.info.cm.listeners);
	for (dev = 0; !rnic_device_info(r, dev, &info); dev++)
		json_device(r, dev, &info);
	printf("],\n\"qps\": [");
	while (rnic_qp_next(r, &it, &qp)) {
		if (rnic_device_info(r, qp.dev, &info))
			continue;
		json_qp(first, info.name, &qp);
		first = false;
	}
	printf("]}\n");
}

int sfnic_stat(int argc, char **argv)
{
	bool json = take_flag(&argc, argv, "--json");
	struct fabric fabric;

	if (!attach(argc, argv, &fabric))
		return 1;
	if (json)
		json_stat(&fabric);
	else
		text_stat(&fabric);
	return 0;
}

/* ---- down ----------------------------------------------------------- */

/* Its end of the connection closes when it has cleaned up. */
static bool wait_gone(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	return poll(&p, 1, DOWN_TIMEOUT_MS) > 0;
}

int sfnic_down(int argc, char **argv)
{
	bool force = take_flag(&argc, argv, "--force");
	char dir[SFNIC_PATH_LEN];
	struct sfnic_rsp rsp;
	int sock, err;

	if (!parse(argc, argv, dir, sizeof(dir)))
		return 1;
	sock = wire_connect(dir);
	if (sock < 0) {
		say_none();
		return 0;
	}
	err = ask(sock, SFNIC_DOWN, force ? DOWN_FORCE : 0, &rsp);
	if (err == EBUSY)
		sfnic_say("programs are using the fabric (see sfnic stat); end "
			  "them, or use sfnic down --force");
	else if (err)
		sfnic_say("the daemon does not answer: %s", strerror(err));
	else if (!wait_gone(sock)) {
		sfnic_say("the daemon does not end; see sfnicd(8)");
		err = ETIMEDOUT;
	}
	close(sock);
	return err ? 1 : 0;
}

/* ---- port ------------------------------------------------------------ */

/* "DEVICE" or "DEVICE/PORT". */
static bool find_port(const struct rnic *r, char *text, uint32_t *dev,
		      uint32_t *port)
{
	char *slash = strchr(text, '/'), *end = NULL;
	struct rnic_device_info info;

	*port = 1;
	if (slash) {
		*slash = '\0';
		*port = (uint32_t)strtoul(slash + 1, &end, 10);
	}
	for (*dev = 0; !rnic_device_info(r, *dev, &info); ++*dev)
		if (!strcmp(info.name, text))
			break;
	if (rnic_device_info(r, *dev, &info))
		sfnic_say("there is no device %s; see sfnic devices", text);
	else if (*port < 1 || *port > info.ports || (end && *end))
		sfnic_say("%s has ports 1 to %u", text, info.ports);
	else
		return true;
	return false;
}

static int set_port(const struct fabric *fabric, char *name, bool up)
{
	struct sfnic_req req = {.op = SFNIC_PORT, .port.up = up};
	struct sfnic_rsp rsp = {0};
	int sock, err;

	if (!find_port(fabric->rnic, name, &req.port.dev, &req.port.port))
		return 1;
	sock = wire_connect(fabric->dir);
	if (sock < 0) {
		say_none();
		return 1;
	}
	err = wire_send(sock, &req, sizeof(req), -1);
	if (!err)
		err = wire_recv(sock, &rsp, sizeof(rsp), NULL);
	close(sock);
	if (!err)
		err = rsp.err;
	if (err)
		sfnic_say("the daemon does not do it: %s", strerror(err));
	return err ? 1 : 0;
}

int sfnic_port(int argc, char **argv)
{
	char *name = argc > 1 ? argv[1] : NULL;
	char *to = argc > 2 ? argv[2] : NULL;
	struct fabric fabric;

	if (!to || (strcmp(to, "up") && strcmp(to, "down"))) {
		sfnic_say("sfnic port DEVICE[/PORT] up|down");
		return 2;
	}
	argv[2] = argv[0];
	if (!attach(argc - 2, argv + 2, &fabric))
		return 1;
	return set_port(&fabric, name, !strcmp(to, "up"));
}
