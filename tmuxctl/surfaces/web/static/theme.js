// Sets the colours before anything is drawn, so that no page flashes white: light, dark, or as the system has it.
(() => {
  let wanted = null;
  try { wanted = localStorage.getItem("tmuxctl.theme"); } catch { /* a browser that keeps nothing */ }
  if (wanted === "light" || wanted === "dark") document.documentElement.dataset.theme = wanted;
})();
