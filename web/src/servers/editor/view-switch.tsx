import { Box, SegmentedControl } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useState } from 'react';
import type { Config } from '../config.ts';

export type View = 'form' | 'both' | 'json';

/** Length from which the JSON is beside the form only when somebody asks for it: it is written anew with every letter. */
const longText = 100_000;

/** Chooses which side is shown: form, JSON, or both where the window is wide enough. */
export function useView(startsInJson: boolean, config: Config) {
  const isWide = useMediaQuery('(min-width: 78em)', true, { getInitialValueInEffect: false });
  const [chosen, choose] = useState<View>(() => {
    if (isWide && JSON.stringify(config).length < longText) return 'both';
    return startsInJson ? 'json' : 'form';
  });
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
