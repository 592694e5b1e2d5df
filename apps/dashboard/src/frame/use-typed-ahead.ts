import { useEffect, useRef } from 'react';

/**
 * Collects what is typed between a request for the palette and the focus of its field, which would otherwise be lost.
 * Returns a function that ends the collection and returns the text.
 */
export function useTypedAhead(requests: number): () => string {
  const collected = useRef({ text: '', stop: () => {} });
  useEffect(() => {
    if (requests === 0) return;
    const controller = new AbortController();
    const collect = (event: KeyboardEvent) => {
      const isInPalette = event.target instanceof Element && event.target.matches('.mantine-Spotlight-search');
      if (isInPalette || event.key === 'Escape') return controller.abort();
      if (event.key.length > 1 || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      collected.current.text += event.key;
    };
    addEventListener('keydown', collect, { capture: true, signal: controller.signal });
    collected.current = { text: '', stop: () => controller.abort() };
    return () => controller.abort();
  }, [requests]);
  return () => {
    const { text, stop } = collected.current;
    stop();
    collected.current.text = '';
    return text;
  };
}
