// Follows a running night: asks its progress endpoint every second, fills the bars, reloads once when it has ended.
"use strict";

(function () {
  const EVERY_MS = 1000;

  function part(root, name) {
    return root.querySelector(`[data-part="${name}"]`);
  }

  function show(root, night) {
    for (const step of night.steps) {
      const row = root.querySelector(`[data-step="${step.name}"]`);
      row.dataset.status = step.status;
      row.querySelector("progress").value = step.pct;
      part(row, "count").textContent = step.count;
    }
    part(root, "detail").textContent = night.detail;
    const log = part(root, "log");
    const text = night.log.map((line) => line + "\n").join("");
    if (log && log.textContent !== text) {
      const wasAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
      log.textContent = text;
      if (wasAtEnd) {
        log.scrollTop = log.scrollHeight;
      }
    }
  }

  async function follow(root) {
    try {
      const response = await fetch(root.dataset.progressUrl, { headers: { Accept: "application/json" } });
      if (response.ok) {
        const night = await response.json();
        show(root, night);
        if (!night.is_running) {
          window.location.reload();
          return;
        }
      } else if (response.status === 403 || response.status === 404) {
        return;
      }
    } catch {
      part(root, "detail").textContent = "The server does not answer; trying again.";
    }
    window.setTimeout(() => follow(root), EVERY_MS);
  }

  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-progress-url]").forEach(follow);
    document.querySelectorAll("[data-copy]").forEach((button) => {
      button.addEventListener("click", () => copy(button));
    });
  });
})();
