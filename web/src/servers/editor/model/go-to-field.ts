import { fieldId } from './editor-context.ts';

declare global {
  interface WindowEventMap {
    /** Opens the tool at an index. */
    'toolhost:open-tool': CustomEvent<number>;
    /** Shows the tab that has a field, by the path of the field. */
    'toolhost:open-part': CustomEvent<string>;
    /** Selects the location of a path in the JSON view. */
    'toolhost:select-json': CustomEvent<string>;
  }
}

/** The parts of the editor that are tabs of a stored server. */
export type Part = 'tools' | 'settings';

/** The tab that has the field at a path. */
export function partOf(path: string): Part {
  return /^(?:tools|views|tool_mode|max_answer_tokens)\b/.test(path) ? 'tools' : 'settings';
}

/** Opens the tab and the tool that a path is about and puts the focus into its field, or the nearest one around it. */
export function goToField(path: string): void {
  dispatchEvent(new CustomEvent('toolhost:open-part', { detail: path }));
  const index = /^tools\[(\d+)\]/.exec(path)?.[1];
  requestAnimationFrame(() => {
    if (index !== undefined) dispatchEvent(new CustomEvent('toolhost:open-tool', { detail: Number(index) }));
    requestAnimationFrame(() => focusSoon(path, mostFrames));
  });
}

/** Frames in which a tab may open. */
const mostFrames = 60;

function focusSoon(path: string, frames: number): void {
  requestAnimationFrame(() => {
    const field = nearestField(path);
    if (field?.checkVisibility() === false && frames > 0) return focusSoon(path, frames - 1);
    if (!field) return void dispatchEvent(new CustomEvent('toolhost:select-json', { detail: path }));
    field.scrollIntoView({ block: 'center' });
    field.focus();
  });
}

function nearestField(path: string): HTMLElement | undefined {
  for (let outer = path; outer !== ''; outer = outer.replace(/(\.|^)[^.[\]]*$|\[\d+\]$/, '')) {
    const field = document.getElementById(fieldId(outer));
    if (field) return field;
  }
  return undefined;
}
