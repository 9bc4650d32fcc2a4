/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Builds the tree.  Every number is printed the way the kernel prints it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_cm.h>
#include "rdma/scalefabric-abi.h"
#include "softnic/port_counters.h"
#include "softnic/tree.h"

/* The part that query_device names: the software RNIC. */
#define PART_ID 0x5f01
#define PORT_ACTIVE 4 /* enum ibv_port_state */

#define PCI_CLASS_IB "0x020700"
#define PCI_CLASS_ETHERNET "0x020000"

/*
 * A tree that is being built.  The first failure is kept and makes all further
 * calls do nothing, so that the builders below read like the tree.
 */
struct tree {
	const struct rnic *rnic;
	const struct tree_net *net;
	const struct tree_host *host;
	int root;
	int err;
	char failed[256]; /* the path that could not be made */
};

static void fail(struct tree *t, const char *path)
{
	if (t->err)
		return;
	t->err = errno ? errno : EIO;
	snprintf(t->failed, sizeof(t->failed), "%s", path);
}

static void make_parents(struct tree *t, const char *path)
{
	char part[256];
	size_t i;

	for (i = 0; path[i] && i < sizeof(part) - 1; i++) {
		if (path[i] == '/') {
			part[i] = '\0';
			if (mkdirat(t->root, part, 0755) && errno != EEXIST)
				fail(t, part);
		}
		part[i] = path[i];
	}
}

static int create_file(struct tree *t, const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = openat(t->root, path, flags, 0644);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	make_parents(t, path);
	return openat(t->root, path, flags, 0644);
}

/* A file that says @value and a newline; NULL: an empty one. */
__attribute__((format(printf, 3, 4))) static void
put(struct tree *t, const char *value, const char *path_format, ...)
{
	char path[256], line[256];
	va_list args;
	int fd, n;

	if (t->err)
		return;
	va_start(args, path_format);
	vsnprintf(path, sizeof(path), path_format, args);
	va_end(args);
	fd = create_file(t, path);
	if (fd < 0) {
		fail(t, path);
		return;
	}
	n = value ? snprintf(line, sizeof(line), "%s\n", value) : 0;
	errno = 0;
	if (n && write(fd, line, n) != n)
		fail(t, path);
	close(fd);
}

__attribute__((format(printf, 3, 4))) static void
put_link(struct tree *t, const char *target, const char *path_format, ...)
{
	char path[256];
	va_list args;

	if (t->err)
		return;
	va_start(args, path_format);
	vsnprintf(path, sizeof(path), path_format, args);
	va_end(args);
	make_parents(t, path);
	if (symlinkat(target, t->root, path))
		fail(t, path);
}

/* ---- how the kernel prints things ----------------------------------- */

struct text {
	char s[128];
};

__attribute__((format(printf, 1, 2))) static struct text
text(const char *format, ...)
{
	struct text text;
	va_list args;

	va_start(args, format);
	vsnprintf(text.s, sizeof(text.s), format, args);
	va_end(args);
	return text;
}

static struct text guid_text(uint64_t guid)
{
	return text("%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		    (unsigned int)(guid >> 32) & 0xffff,
		    (unsigned int)(guid >> 16) & 0xffff,
		    (unsigned int)guid & 0xffff);
}

static struct text gid_text(const uint8_t gid[16])
{
	struct text t;
	int i;

	for (i = 0; i < 8; i++)
		snprintf(t.s + 5 * i, 6, "%02x%02x:", gid[2 * i],
			 gid[2 * i + 1]);
	t.s[39] = '\0';
	return t;
}

static struct text state_text(uint32_t state)
{
	static const char *const names[] = {"NOP",   "DOWN",   "INIT",
					    "ARMED", "ACTIVE", "ACTIVE_DEFER"};

	return text("%" PRIu32 ": %s", state,
		    state < sizeof(names) / sizeof(names[0]) ? names[state] :
							       "<unknown>");
}

static bool ethernet(const struct rnic_port_info *port)
{
	return port->link_layer == RNIC_ETHERNET;
}

/* As query_port says, too. */
static unsigned int cap_mask(const struct rnic_port_info *port)
{
	return ethernet(port) ? IB_UVERBS_PCF_IP_BASED_GIDS :
				IB_UVERBS_PCF_SYS_IMAGE_GUID_SUP;
}

/* ---- processors: any of them is as near as any other ---------------- */

#define CPUS_MAX 1024

static void read_line(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, len - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

static void cpu_list(char *list, size_t len)
{
	read_line("/sys/devices/system/cpu/online", list, len);
	if (!*list)
		snprintf(list, len, "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
}

/* "0-2,5" as words of 32 bits, the highest first: "00000027". */
static struct text cpu_mask(const char *list)
{
	uint32_t mask[CPUS_MAX / 32] = {0};
	unsigned long first, last, high = 0;
	struct text t = {""};
	size_t n = 0, i;
	char *end;

	while (*list) {
		first = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPUS_MAX; first++) {
			mask[first / 32] |= 1u << first % 32;
			high = first;
		}
		if (*end != ',')
			break;
		list = end + 1;
	}
	for (i = high / 32 + 1; i-- > 0 && n < sizeof(t.s);)
		n += snprintf(t.s + n, sizeof(t.s) - n,
			      i == high / 32 ? "%" PRIx32 : ",%08" PRIx32,
			      mask[i]);
	return t;
}

/* ---- the parts of the tree ------------------------------------------ */

static void put_gids(struct tree *t, const char *at,
		     const struct rnic_port_info *port)
{
	static const uint8_t none[16];
	bool valid;
	uint32_t i;

	for (i = 0; i < RNIC_MAX_GIDS; i++) {
		valid = i < port->gids;
		put(t, gid_text(valid ? port->gid[i] : none).s, "%s/gids/%u",
		    at, i);
		if (!valid)
			continue;
		put(t, ethernet(port) ? "RoCE v2" : "IB/RoCE v1",
		    "%s/gid_attrs/types/%u", at, i);
		if (ethernet(port) && t->net)
			put(t, t->net->name, "%s/gid_attrs/ndevs/%u", at, i);
	}
}

static void put_counters(struct tree *t, const char *at)
{
	size_t i;

	for (i = 0; i < port_counters_len; i++)
		put(t, "0", "%s/%s/%s", at, port_counters[i].dir,
		    port_counters[i].file);
	/* Milliseconds that a reader may keep a value; ours are never old. */
	put(t, "0", "%s/hw_counters/lifespan", at);
}

static void put_port_state(struct tree *t, const char *at,
			   const struct rnic_port_info *port,
			   const char *suffix)
{
	put(t, state_text(port->state).s, "%s/state%s", at, suffix);
	put(t, port->state == PORT_ACTIVE ? "5: LinkUp" : "2: Polling",
	    "%s/phys_state%s", at, suffix);
}

static void put_port(struct tree *t, const char *name, uint32_t dev,
		     uint32_t number)
{
	struct rnic_port_info port;
	char at[96];

	if (rnic_port_info(t->rnic, dev, number, &port))
		return;
	snprintf(at, sizeof(at), "sys/class/infiniband/%s/ports/%u", name,
		 number);
	put(t, text("0x%x", port.lid).s, "%s/lid", at);
	put(t, text("0x%x", port.lmc).s, "%s/lid_mask_count", at);
	put(t, text("0x%x", port.sm_lid).s, "%s/sm_lid", at);
	put(t, text("%u", port.sm_sl).s, "%s/sm_sl", at);
	put_port_state(t, at, &port, "");
	put(t, "400 Gb/sec (4X NDR)", "%s/rate", at);
	put(t, text("0x%08x", cap_mask(&port)).s, "%s/cap_mask", at);
	put(t, ethernet(&port) ? "Ethernet" : "InfiniBand", "%s/link_layer",
	    at);
	put(t, "0xffff", "%s/pkeys/0", at);
	put_gids(t, at, &port);
	put_counters(t, at);
}

/* What would be the directory of the card on its bus. */
static void put_bus_device(struct tree *t, const char *name, uint32_t dev)
{
	uint32_t unit = t->host->uverbs + dev;
	struct rnic_port_info port;
	char at[96], cpus[256];

	if (rnic_port_info(t->rnic, dev, 1, &port))
		return;
	snprintf(at, sizeof(at), "sys/class/infiniband/%s/device", name);
	cpu_list(cpus, sizeof(cpus));
	put(t, SCALEFABRIC_MODALIAS_PREFIX "soft", "%s/modalias", at);
	put(t, text("0x%04x", SCALEFABRIC_PCI_VENDOR).s, "%s/vendor", at);
	put(t, text("0x%04x", PART_ID).s, "%s/device", at);
	put(t, ethernet(&port) ? PCI_CLASS_ETHERNET : PCI_CLASS_IB, "%s/class",
	    at);
	put(t, "-1", "%s/numa_node", at);
	put(t, cpu_mask(cpus).s, "%s/local_cpus", at);
	put(t, cpus, "%s/local_cpulist", at);
	put_link(t, "../..", "%s/infiniband/%s", at, name);
	put_link(t, text("../../../../infiniband_verbs/uverbs%u", unit).s,
		 "%s/infiniband_verbs/uverbs%u", at, unit);
	/* InfiniBand: rdma_cm takes its addresses for the first device's. */
	if (t->net && (ethernet(&port) || !dev))
		put_link(t, text("/sys/class/net/%s", t->net->name).s,
			 "%s/net/%s", at, t->net->name);
}

static void put_ib_device(struct tree *t, const struct rnic_device_info *info)
{
	struct utsname host;
	char at[64];

	if (uname(&host))
		snprintf(host.nodename, sizeof(host.nodename), "localhost");
	snprintf(at, sizeof(at), "sys/class/infiniband/%s", info->name);
	put(t, "1: CA", "%s/node_type", at);
	put(t, "0.1.0", "%s/fw_ver", at);
	put(t, "0", "%s/hw_rev", at);
	put(t, "SF-SOFT", "%s/hca_type", at);
	put(t, "SF-SOFT", "%s/board_id", at);
	/* The attribute holds 64 bytes. */
	put(t, text("%.28s %s", host.nodename, info->name).s, "%s/node_desc",
	    at);
	put(t, guid_text(info->node_guid).s, "%s/node_guid", at);
	put(t, guid_text(info->sys_image_guid).s, "%s/sys_image_guid", at);
}

static void put_uverbs(struct tree *t, const char *name, uint32_t unit)
{
	char at[64];

	snprintf(at, sizeof(at), "sys/class/infiniband_verbs/uverbs%u", unit);
	put(t, name, "%s/ibdev", at);
	put(t, text("%u:%u", TREE_MAJOR, TREE_UVERBS_MINOR + unit).s, "%s/dev",
	    at);
	put(t, text("%u", SCALEFABRIC_ABI_VERSION).s, "%s/abi_version", at);
	put_link(t, text("../../infiniband/%s/device", name).s, "%s/device",
		 at);
	put(t, NULL, "dev/infiniband/uverbs%u", unit);
}

static void put_umad(struct tree *t, const char *name, uint32_t port,
		     uint32_t index)
{
	char at[64];

	snprintf(at, sizeof(at), "sys/class/infiniband_mad/umad%u", index);
	put(t, name, "%s/ibdev", at);
	put(t, text("%u", port).s, "%s/port", at);
	put(t, text("%u:%u", TREE_MAJOR, TREE_UMAD_MINOR + index).s, "%s/dev",
	    at);
	put_link(t, text("../../infiniband/%s/device", name).s, "%s/device",
		 at);
	put(t, NULL, "dev/infiniband/umad%u", index);
}

static void put_device(struct tree *t, uint32_t dev)
{
	struct rnic_device_info info;
	uint32_t port;

	if (rnic_device_info(t->rnic, dev, &info))
		return;
	put_ib_device(t, &info);
	put_bus_device(t, info.name, dev);
	put_uverbs(t, info.name, t->host->uverbs + dev);
	for (port = 1; port <= info.ports; port++) {
		put_port(t, info.name, dev, port);
		put_umad(t, info.name, port,
			 t->host->umad + dev * RNIC_MAX_PORTS + port - 1);
	}
}

/* ---- the host's own devices ----------------------------------------- */

/* The number after the highest N of the entries "@name<N>" of a directory. */
static uint32_t first_free(const char *root, const char *dir, const char *name)
{
	char path[PATH_MAX], *end;
	size_t len = strlen(name);
	unsigned long free = 0, n;
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s%s", root, dir);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		if (strncmp(entry->d_name, name, len))
			continue;
		n = strtoul(entry->d_name + len, &end, 10);
		if (!*end && n < 4096 && n >= free)
			free = n + 1;
	}
	if (d)
		closedir(d);
	return free;
}

void tree_host_find(struct tree_host *host, const char *root)
{
	*host = (struct tree_host){.root = root};
	if (!root)
		return;
	host->uverbs =
		first_free(root, "/sys/class/infiniband_verbs", "uverbs");
	host->umad = first_free(root, "/sys/class/infiniband_mad", "umad");
}

/* Links to what is in a directory of the host, but for what we have, too. */
static void put_host_dir(struct tree *t, const char *dir)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", t->host->root, dir);
	d = opendir(path);
	while (d && !t->err && (entry = readdir(d))) {
		if (entry->d_name[0] == '.' ||
		    !strcmp(entry->d_name, "abi_version") ||
		    !strcmp(entry->d_name, "rdma_cm"))
			continue;
		snprintf(path, sizeof(path), "%s/%s/%.200s", t->host->root, dir,
			 entry->d_name);
		put_link(t, path, "%s/%.200s", dir, entry->d_name);
	}
	if (d)
		closedir(d);
}

static void put_host(struct tree *t)
{
	put_host_dir(t, "sys/class/infiniband");
	put_host_dir(t, "sys/class/infiniband_verbs");
	put_host_dir(t, "sys/class/infiniband_mad");
	put_host_dir(t, "dev/infiniband");
}

static void put_all(struct tree *t)
{
	uint32_t dev;

	put(t, "6", "sys/class/infiniband_verbs/abi_version");
	put(t, "5", "sys/class/infiniband_mad/abi_version");
	put(t, text("%u", RDMA_USER_CM_ABI_VERSION).s,
	    "sys/class/misc/rdma_cm/abi_version");
	put(t, text("%u:%u", TREE_MISC_MAJOR, TREE_CM_MINOR).s,
	    "sys/class/misc/rdma_cm/dev");
	put(t, NULL, "dev/infiniband/rdma_cm");
	for (dev = 0; dev < rnic_devices(t->rnic); dev++)
		put_device(t, dev);
	if (t->host->root)
		put_host(t);
}

/* ---- putting it in place -------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int remove_all(const char *path)
{
	if (!nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) ||
	    errno == ENOENT)
		return 0;
	return errno;
}

/* Moves @from/@name to @dir/@name; what was there ends up in @from. */
static int publish(const char *from, const char *dir, const char *name)
{
	char source[PATH_MAX], target[PATH_MAX];

	snprintf(source, sizeof(source), "%s/%s", from, name);
	snprintf(target, sizeof(target), "%s/%s", dir, name);
	if (!rename(source, target))
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return errno;
	if (!renameat2(AT_FDCWD, source, AT_FDCWD, target, RENAME_EXCHANGE))
		return 0;
	/* Not every file system can swap. */
	remove_all(target);
	return rename(source, target) ? errno : 0;
}

static void staging_path(const char *dir, char *path, size_t len)
{
	snprintf(path, len, "%s/tree.new", dir);
}

static int build(struct tree *t, const char *staging)
{
	if (mkdir(staging, 0700))
		return errno;
	t->root = open(staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root < 0)
		return errno;
	put_all(t);
	close(t->root);
	return t->err;
}

int tree_create(const struct rnic *r, const char *dir,
		const struct tree_net *net, const struct tree_host *host,
		char *msg, size_t msg_len)
{
	struct tree t = {.rnic = r, .host = host, .failed = "tree.new"};
	char staging[PATH_MAX];
	int err;

	if (net && net->name[0])
		t.net = net;
	staging_path(dir, staging, sizeof(staging));
	err = remove_all(staging);
	if (!err)
		err = build(&t, staging);
	/* The nodes first: whoever finds a device in sys opens it in dev. */
	if (!err)
		err = publish(staging, dir, "dev");
	if (!err)
		err = publish(staging, dir, "sys");
	if (err == EEXIST && host->root)
		snprintf(msg, msg_len,
			 "the host has a device of that name, too (%s): choose "
			 "another --name",
			 t.failed);
	else if (err)
		snprintf(msg, msg_len, "cannot make %s/%s: %s", dir, t.failed,
			 strerror(err));
	remove_all(staging);
	return err;
}

int tree_remove(const char *dir)
{
	static const char *const names[] = {"sys", "dev", "tree.new"};
	char path[PATH_MAX], gone[PATH_MAX];
	int err = 0, e;
	size_t i;

	/* Out of sight first, so that nobody finds half a tree. */
	staging_path(dir, gone, sizeof(gone));
	remove_all(gone);
	snprintf(path, sizeof(path), "%s/sys", dir);
	if (rename(path, gone) && errno != ENOENT)
		err = errno;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		e = remove_all(path);
		err = err ? err : e;
	}
	return err;
}

/* In one step for whoever reads it. */
static void put_in_place(struct tree *t, const char *at, const char *name)
{
	char from[128], to[128];

	snprintf(from, sizeof(from), "%s/%s.new", at, name);
	snprintf(to, sizeof(to), "%s/%s", at, name);
	if (!t->err && renameat(t->root, from, t->root, to))
		fail(t, to);
}

int tree_put_port_state(const struct rnic *r, const char *dir, uint32_t dev,
			uint32_t number)
{
	struct tree t = {.rnic = r};
	struct rnic_device_info info;
	struct rnic_port_info port;
	char at[96];

	if (rnic_device_info(r, dev, &info) ||
	    rnic_port_info(r, dev, number, &port))
		return EINVAL;
	t.root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t.root < 0)
		return errno;
	snprintf(at, sizeof(at), "sys/class/infiniband/%s/ports/%u", info.name,
		 number);
	put_port_state(&t, at, &port, ".new");
	put_in_place(&t, at, "state");
	put_in_place(&t, at, "phys_state");
	close(t.root);
	return t.err;
}
