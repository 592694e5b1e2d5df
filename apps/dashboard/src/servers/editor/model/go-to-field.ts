import { getFieldId } from './editor-context.ts';

declare global {
  interface WindowEventMap {
    /** Opens the tool at this index. */
    'toolhost:open-tool': CustomEvent<number>;
    /** Shows the tab with the field at this path. */
    'toolhost:open-part': CustomEvent<string>;
    /** Selects this path in the JSON view. */
    'toolhost:select-json': CustomEvent<string>;
  }
}

/** Tabs of the editor of a stored server. */
export type EditorTab = 'tools' | 'settings';

/** Returns the tab with the field at a path. */
export function getTab(path: string): EditorTab {
  return /^(?:tools|views|tool_mode|max_response_tokens)\b/.test(path) ? 'tools' : 'settings';
}

/** Opens the tab and tool of a path and focuses its field, or the nearest enclosing one. */
export function goToField(path: string): void {
  dispatchEvent(new CustomEvent('toolhost:open-part', { detail: path }));
  const index = /^tools\[(\d+)\]/.exec(path)?.[1];
  // Waits until the tab is rendered, and then until the tool is.
  requestAnimationFrame(() => {
    if (index !== undefined) dispatchEvent(new CustomEvent('toolhost:open-tool', { detail: Number(index) }));
    requestAnimationFrame(() => focusWhenVisible(path, maxFrames));
  });
}

/** Maximum frames to wait for a tab to open. */
const maxFrames = 60;

function focusWhenVisible(path: string, frames: number): void {
  requestAnimationFrame(() => {
    const field = findNearestField(path);
    if (field?.checkVisibility() === false && frames > 0) return focusWhenVisible(path, frames - 1);
    if (!field) return void dispatchEvent(new CustomEvent('toolhost:select-json', { detail: path }));
    field.scrollIntoView({ block: 'center' });
    field.focus();
  });
}

function findNearestField(path: string): HTMLElement | undefined {
  // Removes the last segment of the path: `.name` or `[0]`.
  for (let outer = path; outer !== ''; outer = outer.replace(/(\.|^)[^.[\]]*$|\[\d+\]$/, '')) {
    const field = document.getElementById(getFieldId(outer));
    if (field) return field;
  }
  return undefined;
}
