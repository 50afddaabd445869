// The service worker: lets the page be installed on a phone, and opens it without a network, where it says that the server
// does not answer. It keeps the page's own files only, never anything of a session, and asks the network first.
const KEPT = "tmuxctl-page-1";
const SHELL = "/";

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name !== KEPT) await caches.delete(name);
    await self.clients.claim();
  })());
});

const isOwnFile = (path) =>
  path.startsWith("/assets/") || path === "/favicon.svg" || path === "/manifest.webmanifest";

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname, origin, search } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  const opens = request.mode === "navigate" && !search && /^\/(teams|(session|team)\/.*)?$/.test(pathname);
  if (opens || isOwnFile(pathname)) event.respondWith(answer(request, opens ? SHELL : pathname));
});

async function answer(request, key) {
  const kept = await caches.open(KEPT);
  try {
    const found = await fetch(request);
    if (found.ok && !found.redirected && found.type === "basic") await kept.put(key, found.clone());
    return found;
  } catch {
    const known = await kept.match(key);
    if (known) return known;
    return new Response("tmuxctl: the server does not answer. This page comes back once it does: load it again.\n", {
      status: 503, headers: { "Content-Type": "text/plain; charset=utf-8" },
    });
  }
}

// A notification that is clicked shows its session.
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const path = event.notification.data?.path;
  if (typeof path !== "string" || !/^\/(session\/.*)?$/.test(path)) return;
  event.waitUntil((async () => {
    const open = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    if (!open.length) return self.clients.openWindow(path);
    open[0].postMessage({ show: path });
    return open[0].focus();
  })());
});
