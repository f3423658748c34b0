// The search box offers completions while somebody types: a combobox with a list, by the pattern of the ARIA authoring
// practices. Without this script it is a plain box. What is chosen with the arrows is in the box at once; Escape brings
// back what was typed.
'use strict';
(() => {
  const WAIT = 60;    // milliseconds after a key before the server is asked
  const box = document.getElementById('q'), form = box.form;
  const list = document.createElement('ul'), status = document.createElement('span');
  let typed = box.value, chosen = -1, timer = 0, request = null;

  list.id = 'completions';
  list.className = 'completions';
  list.hidden = true;
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Completions');
  status.className = 'hidden';
  status.setAttribute('role', 'status');
  form.append(list, status);
  for (const [name, value] of Object.entries({role: 'combobox', 'aria-autocomplete': 'list', 'aria-haspopup': 'listbox',
    'aria-expanded': 'false', 'aria-controls': list.id})) box.setAttribute(name, value);

  const options = () => [...list.children];

  // Nothing that was asked for may open the list later.
  function close() {
    clearTimeout(timer);
    if (request) request.abort();
    request = null;
    list.hidden = true;
    list.replaceChildren();
    chosen = -1;
    status.textContent = '';
    box.setAttribute('aria-expanded', 'false');
    box.removeAttribute('aria-activedescendant');
  }

  function mark(number) {
    chosen = number;
    options().forEach((option, i) => option.setAttribute('aria-selected', String(i === number)));
    if (number < 0) {
      box.removeAttribute('aria-activedescendant');
      return;
    }
    const option = list.children[number];
    box.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({block: 'nearest'});
  }

  function choose(number) {
    mark(number);
    box.value = number < 0 ? typed : list.children[number].dataset.text;
  }

  function place(url) {
    try {
      return new URL(url).host;
    } catch {
      return '';
    }
  }

  function show(completions) {
    list.replaceChildren(...completions.map((completion, i) => {
      const option = document.createElement('li'), text = document.createElement('span');
      option.id = `completion-${i}`;
      option.dataset.text = completion.text;
      option.setAttribute('role', 'option');
      option.setAttribute('aria-selected', 'false');
      text.textContent = completion.text;
      option.append(text);
      if (completion.url) {
        const where = document.createElement('span');
        where.className = 'where';
        where.textContent = place(completion.url);
        option.append(' ', where);
      }
      return option;
    }));
    list.hidden = completions.length === 0;
    chosen = -1;
    box.removeAttribute('aria-activedescendant');
    box.setAttribute('aria-expanded', String(!list.hidden));
    status.textContent = list.hidden ? '' : `${completions.length} completions, choose with the arrow keys`;
  }

  async function ask() {
    const text = box.value, own = request = new AbortController();
    try {
      const reply = await fetch(`/api/complete?q=${encodeURIComponent(text)}`, {signal: own.signal});
      const answer = reply.ok ? await reply.json() : {completions: []};
      if (request === own && box.value === text && document.activeElement === box) show(answer.completions);
    } catch {
      // Another key was pressed, or there is no answer: the box works without.
    }
  }

  box.addEventListener('input', event => {
    typed = box.value;
    if (event.isComposing || !typed.trim()) {
      close();
      return;
    }
    clearTimeout(timer);
    if (request) request.abort();
    timer = setTimeout(ask, WAIT);
  });
  box.addEventListener('compositionend', () => box.dispatchEvent(new Event('input')));
  box.addEventListener('keydown', event => {
    if (event.isComposing || event.ctrlKey || event.metaKey) return;
    const count = list.children.length;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (list.hidden && !box.value.trim()) return;
      event.preventDefault();
      if (list.hidden) {
        typed = box.value;
        ask();
      } else {
        // -1, which is what was typed, comes before the first and after the last.
        const places = count + 1, step = event.key === 'ArrowDown' ? 1 : places - 1;
        choose((chosen + 1 + step) % places - 1);
      }
    } else if (event.key === 'Escape' && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      box.value = typed;
      close();
    } else if (event.key === 'Tab') {
      close();
    }
  });
  // The box keeps the focus, so that its list stays until the click has arrived.
  list.addEventListener('mousedown', event => event.preventDefault());
  list.addEventListener('click', event => {
    const option = event.target.closest('[role=option]');
    if (!option) return;
    choose(options().indexOf(option));
    form.requestSubmit();
  });
  form.addEventListener('submit', close);
  box.addEventListener('blur', close);
})();
