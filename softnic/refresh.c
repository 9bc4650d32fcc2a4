/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the present value of a counter to its file, by a rename: a reader sees
 * the old value or the new one.
 */
#include <string.h>

#include "softnic/client.h"
#include "softnic/port_counters.h"
#include "softnic/raw.h"
#include "softnic/refresh.h"

struct counter_path {
	const char *name; /* of the device */
	size_t name_len;
	uint32_t port;
	const struct port_counter *counter;
};

/* .../NAME/ports/N/DIR/FILE */
static bool parse(const char *path, struct counter_path *out)
{
	const char *ports = strstr(path, "/ports/"), *dir, *file;

	if (!ports || ports == path)
		return false;
	out->name = ports;
	while (out->name > path && out->name[-1] != '/')
		out->name--;
	out->name_len = ports - out->name;
	ports += strlen("/ports/");
	if (ports[0] < '1' || ports[0] > '9' || ports[1] != '/')
		return false;
	out->port = ports[0] - '0';
	dir = ports + 2;
	file = strchr(dir, '/');
	if (!file)
		return false;
	out->counter =
		port_counter_find(dir, file - dir, file + 1, strlen(file + 1));
	return out->counter;
}

static bool find_device(const struct rnic *r, const struct counter_path *at,
			uint32_t *dev)
{
	struct rnic_device_info info;

	for (*dev = 0; !rnic_device_info(r, *dev, &info); ++*dev)
		if (strlen(info.name) == at->name_len &&
		    !memcmp(info.name, at->name, at->name_len))
			return true;
	return false;
}

/* A name in the tree that no other thread uses. */
static bool scratch_path(const char *dir, char *buf, size_t len)
{
	static const char name[] = "/sys/.counter.";
	char tid[24];
	size_t n = port_counter_format(tid, RAW(SYS_gettid)) - 1;

	if (strlen(dir) + sizeof(name) + n > len)
		return false;
	tid[n] = '\0';
	stpcpy(stpcpy(stpcpy(buf, dir), name), tid);
	return true;
}

static void replace(const char *dir, const char *path, uint64_t value)
{
	char scratch[256], text[24];
	size_t n = port_counter_format(text, value);
	bool done;
	int fd;

	if (!scratch_path(dir, scratch, sizeof(scratch)))
		return;
	fd = RAW(SYS_openat, AT_FDCWD, scratch,
		 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	done = raw_write(fd, text, n) == (long)n;
	raw_close(fd);
	if (!done || RAW(SYS_renameat2, AT_FDCWD, scratch, AT_FDCWD, path, 0))
		RAW(SYS_unlinkat, AT_FDCWD, scratch, 0);
}

void refresh_counter(const char *dir, const char *path)
{
	struct rnic_counters values;
	struct counter_path at;
	struct rnic *r;
	uint32_t dev;

	if (!parse(path, &at))
		return;
	r = sfnic_rnic();
	if (!r || !find_device(r, &at, &dev))
		return;
	rnic_port_counters(r, dev, at.port, &values);
	replace(dir, path, port_counter_value(at.counter, &values));
}

void refresh_relative(const char *dir, const char *path)
{
	char full[512];
	size_t len;
	long n = RAW(SYS_readlinkat, AT_FDCWD, "/proc/self/cwd", full,
		     sizeof(full));

	while (path[0] == '.' && path[1] == '/')
		path += 2;
	len = strlen(path);
	if (n <= 0 || (size_t)n + len + 2 > sizeof(full))
		return;
	full[n] = '/';
	memcpy(full + n + 1, path, len + 1);
	refresh_counter(dir, full);
}
