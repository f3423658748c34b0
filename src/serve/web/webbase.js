// All pages: "/" puts the cursor into the search box, and on the front page it is there from the beginning; j and k
// walk through results. wbBytes writes sizes as the server does (htmlpen.c).
'use strict';
const wbBytes = n => {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  for (; n >= 999.5 && unit < units.length - 1; unit++) n /= 1000;
  return (unit && n < 9.95 ? n.toFixed(1) : n.toFixed(0)) + ' ' + units[unit];
};
(() => {
  const box = document.getElementById('q');
  if (document.body.classList.contains('front')) box.focus();
  const hits = () => [...document.querySelectorAll('.hit h2 a')];
  function step(by) {
    const all = hits(), at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    if (next) next.focus();
  }
  document.addEventListener('keydown', event => {
    const typing = event.target.closest('input, textarea, select, [contenteditable]');
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape' && event.target === box) box.blur();
    if (typing) return;
    if (event.key === '/') {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key === 'j' || event.key === 'k') {
      step(event.key === 'j' ? 1 : -1);
    }
  });
})();
