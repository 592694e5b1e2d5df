import { useEffect, useState } from 'react';

const bar = {
  position: 'fixed',
  top: 0,
  left: 0,
  right: 0,
  height: 2,
  zIndex: 400,
  background: 'var(--th-accent)',
  transformOrigin: 'left',
} as const;

/** A thin line at the top while the next page loads, when that takes longer than a moment. */
export function Progress({ isActive }: { isActive: boolean }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (!isActive) return setShown(false);
    const timer = setTimeout(() => setShown(true), 100);
    return () => clearTimeout(timer);
  }, [isActive]);
  return isShown ? <div style={bar} role="progressbar" aria-label="Loading the page" /> : null;
}
