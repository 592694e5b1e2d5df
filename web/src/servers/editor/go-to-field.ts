import { fieldId } from './editor-context.ts';
import { placeOf } from './json-place.ts';

export const openToolEvent = 'toolhost:open-tool';

/** Opens the tool that a path is about and puts the focus into its field, or the nearest one around it. */
export function goToField(path: string): void {
  const index = /^tools\[(\d+)\]/.exec(path)?.[1];
  if (index !== undefined) dispatchEvent(new CustomEvent(openToolEvent, { detail: Number(index) }));
  requestAnimationFrame(() => requestAnimationFrame(() => focusNearest(path)));
}

function focusNearest(path: string): void {
  for (let place = path; place !== ''; place = place.replace(/(\.|^)[^.[\]]*$|\[\d+\]$/, '')) {
    const field = document.getElementById(fieldId(place));
    if (!field) continue;
    field.scrollIntoView({ block: 'center' });
    field.focus();
    return;
  }
  focusInJson(path);
}

/** Where there is no form, the place in the JSON is selected instead. */
function focusInJson(path: string): void {
  const field = document.querySelector<HTMLTextAreaElement>('.th-json-text textarea');
  const place = field && placeOf(field.value, path);
  if (!field) return;
  // Only a field that gets the focus scrolls to what is selected in it.
  field.blur();
  field.setSelectionRange(place?.start ?? 0, place?.end ?? 0);
  field.focus();
}
