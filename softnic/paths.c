/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Leads paths into the tree.
 */
#include <string.h>

#include "softnic/paths.h"
#include "softnic/raw.h"

/* Every path of ours contains one: the check that all other paths pay for. */
#define WORD "infiniband"
#define CM_WORD "rdma_cm"

#define NODES 0
static const char *const roots[] = {
	[NODES] = "/dev/infiniband",   "/sys/class/infiniband",
	"/sys/class/infiniband_verbs", "/sys/class/infiniband_mad",
	"/sys/class/misc/rdma_cm",
};
#define ROOTS (sizeof(roots) / sizeof(roots[0]))

/* The next component of a path; empty at the end. */
struct part {
	const char *at;
	size_t len;
};

static struct part next_part(const char **path)
{
	struct part part;

	*path += strspn(*path, "/");
	part.at = *path;
	part.len = strcspn(*path, "/");
	*path += part.len;
	return part;
}

static bool is(const struct part *part, const char *word)
{
	return !strncmp(part->at, word, part->len) && !word[part->len];
}

/* Does @rest, read below a directory, leave it upwards? */
static bool escapes(const char *rest)
{
	struct part part;
	int depth = 0;

	while ((part = next_part(&rest)).len) {
		if (is(&part, ".."))
			depth--;
		else if (!is(&part, "."))
			depth++;
		if (depth < 0)
			return true;
	}
	return false;
}

/* A path without ".", ".." and double slashes, as far as it was read. */
struct plain {
	size_t len;
	char path[128];
};

static bool plain_add(struct plain *plain, const struct part *part)
{
	if (is(part, ".."))
		while (plain->len && plain->path[--plain->len] != '/')
			;
	else if (!is(part, ".")) {
		if (plain->len + part->len + 2 > sizeof(plain->path))
			return false;
		plain->path[plain->len++] = '/';
		memcpy(plain->path + plain->len, part->at, part->len);
		plain->len += part->len;
	}
	plain->path[plain->len] = '\0';
	return true;
}

/*
 * The root that the absolute @path lies below, or ROOTS.  @path moves to what
 * follows it, which is handed on as it is: the tree may contain links.
 */
static size_t find_root(const char **path)
{
	struct plain plain = {0};
	struct part part;
	size_t i;

	while ((part = next_part(path)).len) {
		if (!plain_add(&plain, &part))
			break;
		for (i = 0; i < ROOTS; i++)
			if (!strcmp(plain.path, roots[i]) && !escapes(*path))
				return i;
	}
	return ROOTS;
}

/* Puts @text at buf[len]; the new length, or 0 when it does not fit. */
static size_t append(char *buf, size_t len, const char *text)
{
	size_t n = strlen(text);

	if (!len || len + n >= PLACE_PATH_MAX)
		return 0;
	memcpy(buf + len, text, n + 1);
	return len + n;
}

/* "/proc/self/fd/N" or the like. */
static void base_link(int dirfd, char link[32])
{
	char digits[12], *p = link;
	unsigned int n = dirfd;
	size_t count = 0;

	if (dirfd == AT_FDCWD) {
		strcpy(link, "/proc/self/cwd");
		return;
	}
	p = stpcpy(p, "/proc/self/fd/");
	do {
		digits[count++] = '0' + n % 10;
		n /= 10;
	} while (n);
	while (count)
		*p++ = digits[--count];
	*p = '\0';
}

/* @path made absolute in @buf. */
static bool absolute(int dirfd, const char *path, char buf[PLACE_PATH_MAX])
{
	char link[32];
	long n;

	base_link(dirfd, link);
	n = RAW(SYS_readlinkat, AT_FDCWD, link, buf, PLACE_PATH_MAX - 1);
	if (n <= 0 || buf[0] != '/')
		return false;
	buf[n] = '\0';
	return append(buf, append(buf, n, "/"), path);
}

static void find_node(struct place *place, const char *rest)
{
	static const struct {
		const char *name;
		enum place_kind kind;
	} nodes[] = {{"uverbs", PLACE_UVERBS}, {"umad", PLACE_UMAD}};
	struct part part = next_part(&rest);
	size_t i, len, digits;

	if (is(&part, CM_WORD)) {
		place->kind = PLACE_RDMA_CM;
		return;
	}
	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		len = strlen(nodes[i].name);
		if (strncmp(part.at, nodes[i].name, len))
			continue;
		digits = strspn(part.at + len, "0123456789");
		if (!digits || digits > 4 || part.at[len + digits])
			continue;
		place->kind = nodes[i].kind;
		for (place->unit = 0; digits; digits--, len++)
			place->unit = place->unit * 10 + part.at[len] - '0';
		return;
	}
}

/* Apart, so that all other paths do not pay for its stack. */
static __attribute__((noinline)) const char *
find_in_tree(struct place *place, const char *dir, int dirfd, const char *path)
{
	char joined[PLACE_PATH_MAX];
	const char *rest = path;
	size_t root, len;

	if (path[0] != '/') {
		if (!absolute(dirfd, path, joined))
			return path;
		rest = joined;
	}
	root = find_root(&rest);
	len = strlen(dir);
	if (root == ROOTS || len >= PLACE_PATH_MAX)
		return path;
	memcpy(place->buf, dir, len);
	if (!append(place->buf, append(place->buf, len, roots[root]), rest))
		return path;
	place->kind = PLACE_TREE;
	place->path = place->buf;
	if (root == NODES)
		find_node(place, rest);
	return place->path;
}

const char *place_find(struct place *place, const char *dir, int dirfd,
		       const char *path)
{
	place->kind = PLACE_ELSEWHERE;
	place->path = path;
	if (!path || (!strstr(path, WORD) && !strstr(path, CM_WORD)))
		return path;
	return find_in_tree(place, dir, dirfd, path);
}

const char *place_shown(const char *dir, const char *path)
{
	size_t i, n, len = strlen(dir);

	if (strncmp(path, dir, len))
		return path;
	for (i = 0; i < ROOTS; i++) {
		n = strlen(roots[i]);
		if (!strncmp(path + len, roots[i], n) &&
		    (path[len + n] == '/' || !path[len + n]))
			return path + len;
	}
	return path;
}
