import { fieldId } from './editor-context.ts';

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
}
