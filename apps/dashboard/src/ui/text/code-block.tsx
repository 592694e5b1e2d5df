import { Box } from '@mantine/core';
import { createElement, Fragment, type ReactNode } from 'react';
import { CopyButton } from '../actions/copy-button.tsx';
import { toVisible } from './visible.ts';

export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <Box pos="relative" className="th-code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable text must be reachable by keyboard */}
      <section className="th-code" tabIndex={0} aria-label={label} style={{ paddingRight: '3rem' }}>
        {highlight(toVisible(code))}
      </section>
      <CopyButton value={code} label={`Copy ${label}`} />
    </Box>
  );
}

/** Maximum length of JSON whose keys and strings are colored. */
const maxHighlighted = 50_000;

/** Marks the keys and strings of JSON. */
function highlight(code: string): ReactNode {
  if (!/^\s*[[{]/.test(code) || code.length > maxHighlighted) return code;
  const parts = code.split(/("(?:[^"\\]|\\.)*")/).map((part, index, all) => {
    if (index % 2 === 0) return part;
    return createElement('span', { 'data-token': all[index + 1]?.startsWith(':') ? 'key' : 'string' }, part);
  });
  return createElement(Fragment, null, ...parts);
}
