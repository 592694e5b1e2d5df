import type { ReactNode } from 'react';
import { useCanEdit } from '../../frame/session.ts';
import { Hint } from '../text/hint.tsx';

/** Explains to viewers why controls are disabled. Renders nothing for others. */
export function ViewerNote({ children }: { children: ReactNode }) {
  if (useCanEdit()) return null;
  return <Hint>You are a viewer of this workspace. {children}</Hint>;
}
