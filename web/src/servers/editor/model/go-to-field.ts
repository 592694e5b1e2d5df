import { locationInJson } from '../json/json-location.ts';
import { fieldId } from './editor-context.ts';

declare global {
  interface WindowEventMap {
    /** Opens the tool at an index. */
    'toolhost:open-tool': CustomEvent<number>;
  }
}

/** Opens the tool that a path is about and puts the focus into its field, or the nearest one around it. */
export function goToField(path: string): void {
  const index = /^tools\[(\d+)\]/.exec(path)?.[1];
  if (index !== undefined) dispatchEvent(new CustomEvent('toolhost:open-tool', { detail: Number(index) }));
  requestAnimationFrame(() => requestAnimationFrame(() => focusNearest(path)));
}

function focusNearest(path: string): void {
  for (let outer = path; outer !== ''; outer = outer.replace(/(\.|^)[^.[\]]*$|\[\d+\]$/, '')) {
    const field = document.getElementById(fieldId(outer));
    if (!field) continue;
    field.scrollIntoView({ block: 'center' });
    field.focus();
    return;
  }
  focusInJson(path);
}

/** Selects the location in the JSON view when the form is not shown. */
function focusInJson(path: string): void {
  const field = document.querySelector<HTMLTextAreaElement>('.th-json-text textarea');
  const location = field && locationInJson(field.value, path);
  if (!field) return;
  // Only a field that gets the focus scrolls to what is selected in it.
  field.blur();
  field.setSelectionRange(location?.start ?? 0, location?.end ?? 0);
  field.focus();
}
