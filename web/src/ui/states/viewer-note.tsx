import type { ReactNode } from 'react';
import { useCanEdit } from '../../frame/session.ts';
import { Hint } from '../text/hint.tsx';

/** Explains to viewers why they cannot use the controls here; empty for others. */
export function ViewerNote({ children }: { children: ReactNode }) {
  if (useCanEdit()) return null;
  return <Hint>You are a viewer of this workspace. {children}</Hint>;
}
