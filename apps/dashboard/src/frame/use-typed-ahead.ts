import { useEffect, useRef } from 'react';

/**
 * Collects what is typed between a request for the palette and the focus of its field, which would otherwise be lost.
 * Returns a function that ends the collection and returns the text.
 */
export function useTypedAhead(requests: number): () => string {
  const text = useRef('');
  const collection = useRef<AbortController>(undefined);
  useEffect(() => {
    if (requests === 0) return;
    const controller = new AbortController();
    const collect = (event: KeyboardEvent) => {
      const isInPalette = event.target instanceof Element && event.target.matches('.mantine-Spotlight-search');
      if (isInPalette || event.key === 'Escape') return controller.abort();
      if (event.key.length > 1 || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      text.current += event.key;
    };
    addEventListener('keydown', collect, { capture: true, signal: controller.signal });
    collection.current = controller;
    return () => controller.abort();
  }, [requests]);
  return () => {
    collection.current?.abort();
    const typed = text.current;
    text.current = '';
    return typed;
  };
}
