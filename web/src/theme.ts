import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from '@mantine/core';

/** The blue of the sign-in and consent pages. */
const accent: MantineColorsTuple = [
  '#eef5ff',
  '#dbe9ff',
  '#b4d1ff',
  '#84b8ff',
  '#559cf8',
  '#2f82ea',
  '#176fdc',
  '#0b5fce',
  '#0850af',
  '#083f88',
];

const gray: MantineColorsTuple = [
  '#f7f8fa',
  '#f1f3f6',
  '#e6e9ee',
  '#dde2e8',
  '#c6cdd6',
  '#8b96a2',
  '#6b7683',
  '#56616d',
  '#343d47',
  '#1a2027',
];

const dark: MantineColorsTuple = [
  '#e9edf2',
  '#c4ccd6',
  '#a3aeba',
  '#78838f',
  '#333c47',
  '#27303a',
  '#161b22',
  '#0f141a',
  '#0b0f14',
  '#07090c',
];

const dialogTitle = { fontWeight: 650, fontSize: '1.0625rem', lineHeight: 1.4 };

export const theme = createTheme({
  primaryColor: 'accent',
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  colors: { accent, gray, dark },
  black: '#1a2027',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  defaultRadius: 'md',
  cursorType: 'pointer',
  focusRing: 'auto',
  respectReducedMotion: true,
  headings: {
    fontWeight: '650',
    sizes: {
      h1: { fontSize: '1.5rem', lineHeight: '1.3' },
      h2: { fontSize: '1.125rem', lineHeight: '1.4' },
      h3: { fontSize: '0.95rem', lineHeight: '1.5' },
    },
  },
  components: {
    Modal: {
      defaultProps: { centered: true, transitionProps: { duration: 0 }, closeButtonProps: { 'aria-label': 'Close' } },
      styles: { title: dialogTitle },
    },
    Drawer: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } }, styles: { title: dialogTitle } },
    Tooltip: {
      defaultProps: {
        openDelay: 300,
        withArrow: true,
        events: { hover: true, focus: true, touch: false },
        // A tooltip whose text becomes longer is moved only in the next frame. Until then it must not widen the page.
        floatingStrategy: 'fixed',
      },
    },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': 'Dismiss' } } },
    Select: { defaultProps: { checkIconPosition: 'right' } },
    Alert: { defaultProps: { variant: 'light', radius: 'md' } },
    Badge: { defaultProps: { variant: 'light', radius: 'sm', tt: 'none', fw: 550 } },
  },
});

/** Replacements for Mantine's colours that are too faint for WCAG AA, and a few colours of our own. */
export const cssVariablesResolver: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#56616d',
    '--mantine-color-placeholder': '#6b7683',
    '--mantine-color-error': '#b3261e',
    '--mantine-color-red-light-color': '#a31f18',
    '--mantine-color-yellow-light-color': '#7a4d00',
    '--mantine-color-green-light-color': '#176534',
    '--mantine-color-accent-light-color': '#0850af',
    '--mantine-color-gray-light-color': '#434d58',
    '--mantine-color-gray-light': '#eceff3',
    '--mantine-color-red-light': '#fdeceb',
    '--mantine-color-green-light': '#e2f5e9',
    '--mantine-color-yellow-light': '#fff4dc',
    '--mantine-color-accent-light': '#e6f0ff',
    '--th-ground': '#f6f7f9',
    '--th-paper': '#ffffff',
    '--th-panel': '#f5f7f9',
    '--th-line': '#dde2e8',
    '--th-edge': '#8b96a2',
    '--th-accent': '#0b5fce',
    '--th-good': '#187a3c',
    '--th-warn': '#8a5a00',
    '--th-bad': '#b3261e',
  },
  dark: {
    '--mantine-color-dimmed': '#a3aeba',
    '--mantine-color-placeholder': '#8b96a2',
    '--mantine-color-error': '#ff9c93',
    '--mantine-color-anchor': '#84b8ff',
    '--mantine-color-red-light-color': '#ff9c93',
    '--mantine-color-yellow-light-color': '#f0c56b',
    '--mantine-color-green-light-color': '#6ed391',
    '--mantine-color-accent-light-color': '#9cc6ff',
    '--mantine-color-gray-light-color': '#c4ccd6',
    '--mantine-color-gray-light': '#27303a',
    '--mantine-color-body': '#161b22',
    '--mantine-color-disabled': '#222a34',
    '--mantine-color-accent-light': '#1a2d48',
    '--mantine-color-red-light': '#3d2023',
    '--mantine-color-green-light': '#173123',
    '--mantine-color-yellow-light': '#352b12',
    '--th-ground': '#0d1116',
    '--th-paper': '#161b22',
    '--th-panel': '#1b222b',
    '--th-line': '#2c3540',
    '--th-edge': '#66717e',
    '--th-accent': '#84b8ff',
    '--th-good': '#6ed391',
    '--th-warn': '#f0c56b',
    '--th-bad': '#ff9c93',
  },
});
