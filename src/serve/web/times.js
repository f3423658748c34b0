// All pages: every <time> with a moment is shown in the browser's zone, with seconds and the name of the zone; UTC is
// in its title. Without this script it says UTC.
'use strict';
const wbTimes = (() => {
  const two = number => String(number).padStart(2, '0');
  const dayOf = date =>
    `${String(date.getFullYear()).padStart(4, '0')}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  function zoneOf(date) {
    const parts = new Intl.DateTimeFormat('en', {timeZoneName: 'short'}).formatToParts(date);
    return parts.find(part => part.type === 'timeZoneName').value;
  }
  const textOf = date =>
    `${dayOf(date)} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())} ${zoneOf(date)}`;
  const utcOf = date => `${date.toISOString().slice(0, 10)} ${date.toISOString().slice(11, 19)} UTC`;
  function show(element) {
    const date = new Date(element.dateTime);
    if (!/T/.test(element.dateTime) || isNaN(date)) return;
    element.textContent = textOf(date);
    element.title = utcOf(date);
  }
  for (const element of document.querySelectorAll('time[datetime]')) show(element);
  return {dayOf, show, utcOf, zoneOf};
})();
