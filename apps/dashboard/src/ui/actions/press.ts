import { createContext, useContext } from 'react';

/**
 * Keeps the layout still while the pointer is pressed, because a button that moves between press and release is not
 * clicked. Every page change that is not the direct effect of a click goes through `beforeClick` or `afterClick`.
 */
export type Press = {
  /** For effects of leaving a field. Runs when the pointer is released, before the click event. */
  beforeClick: (run: () => void) => void;
  /** For responses of the service. Runs after the click event. */
  afterClick: (run: () => void) => void;
};

/** Maximum wait for `mouseup` in ms. A finger that scrolls or stays too long causes no mouse events. */
const maxWaitMs = 400;

export function watchPress(page: Window): Press {
  let presses = 0;
  let isPressed = false;
  const beforeQueue: (() => void)[] = [];
  const afterQueue: (() => void)[] = [];
  const runAll = (queue: (() => void)[]) => {
    for (const run of queue.splice(0)) run();
  };
  const press = ({ button }: MouseEvent) => {
    if (button !== 0) return;
    isPressed = true;
    presses++;
  };
  const release = () => {
    if (!isPressed) return;
    isPressed = false;
    runAll(beforeQueue);
    // The click event is dispatched in the same task as the release.
    page.setTimeout(() => !isPressed && runAll(afterQueue));
  };
  const releaseLater = () => {
    const currentPress = presses;
    page.setTimeout(() => currentPress === presses && release(), maxWaitMs);
  };
  const releaseIfMissed = ({ buttons, pointerType }: PointerEvent) => {
    if (buttons === 0 && pointerType === 'mouse') release();
  };
  const listen = <Name extends keyof WindowEventMap>(name: Name, listener: (event: WindowEventMap[Name]) => void) =>
    page.addEventListener(name, listener, { capture: true, passive: true });
  listen('pointerdown', press);
  // For touch, mousedown is dispatched only after the finger has been lifted.
  listen('mousedown', press);
  listen('mouseup', release);
  listen('pointerup', releaseLater);
  listen('pointercancel', release);
  listen('pointermove', releaseIfMissed);
  listen('contextmenu', release);
  listen('blur', ({ target }) => target === page && release());
  return {
    beforeClick: (run) => (isPressed ? void beforeQueue.push(run) : run()),
    afterClick: (run) => (isPressed ? void afterQueue.push(run) : run()),
  };
}

const Context = createContext<Press | undefined>(undefined);

export const PressProvider = Context.Provider;

export function usePress(): Press {
  const press = useContext(Context);
  if (!press) throw new Error('usePress was called outside PressProvider');
  return press;
}
