import { Box, SegmentedControl } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useState } from 'react';

export type View = 'form' | 'both' | 'json';

/** Chooses which side is shown: form, JSON, or both where the window is wide enough. */
export function useView(startsInJson: boolean) {
  const isWide = useMediaQuery('(min-width: 78em)', true, { getInitialValueInEffect: false });
  const [chosen, choose] = useState<View>(isWide ? 'both' : startsInJson ? 'json' : 'form');
  const view: View = chosen === 'both' && !isWide ? 'form' : chosen;
  return { view, isWide, choose };
}

type Props = { view: View; isWide: boolean; onChange: (view: View) => void };

export function ViewSwitch({ view, isWide, onChange }: Props) {
  const choices = [
    { value: 'form', label: 'Form' },
    ...(isWide ? [{ value: 'both', label: 'Form and JSON' }] : []),
    { value: 'json', label: 'JSON' },
  ];
  return (
    <Box>
      <SegmentedControl
        size="xs"
        data={choices}
        value={view}
        onChange={(next) => onChange(next as View)}
        aria-label="View"
      />
    </Box>
  );
}
