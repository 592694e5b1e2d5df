import { useLayoutEffect, useRef, useState } from 'react';

/** The position of the caret in a text area, and a function that moves it after the text has changed. */
export function useCaret() {
  const ref = useRef<HTMLTextAreaElement>(null);
  const wanted = useRef<number>(undefined);
  const [at, setAt] = useState<number>();
  useLayoutEffect(() => {
    if (wanted.current === undefined || !ref.current) return;
    ref.current.focus();
    ref.current.setSelectionRange(wanted.current, wanted.current);
    wanted.current = undefined;
  });
  return {
    ref,
    at,
    read: () => {
      const area = ref.current;
      setAt(area && area.selectionStart === area.selectionEnd ? area.selectionStart : undefined);
    },
    moveTo: (position: number) => {
      wanted.current = position;
      setAt(position);
    },
  };
}
