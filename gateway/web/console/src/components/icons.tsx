/** Line icons, drawn in the colour of the text around them. */

const PATHS = {
  runs: "M5 4v16l14-8z",
  ledger: "M5 4h14v16H5zM9 9h6M9 13h6M9 17h3",
  costs: "M5 20v-7M12 20V5M19 20v-11",
  assets: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.500 9.500h.01",
  check: "M5 12.500l4.500 4.500L19 7.500",
  cross: "M6 6l12 12M18 6L6 18",
  stop: "M7 7h10v10H7z",
  pause: "M9 6v12M15 6v12",
  clock: "M12 7v5l3 2M12 3a9 9 0 100 18 9 9 0 000-18z",
  bolt: "M13 3L5 14h6l-1 7 9-12h-6z",
  alert: "M12 8v5M12 16.500v.01M12 3.500l9.500 16.500h-19z",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  down: "M6 9l6 6 6-6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  sound: "M4 10v4h4l5 4V6L8 10zM17 9c1.500 1.700 1.500 4.300 0 6",
  text: "M5 6h14M5 11h14M5 16h8",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  film: "M4 5h16v14H4zM9 9l6 3-6 3z",
  link: "M14 5h5v5M19 5l-9 9M17 14v5H5V7h5",
  retry: "M19 12a7 7 0 11-2-5l2 2M19 4v5h-5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, class: extra }: { name: IconName; class?: string }) {
  return (
    <svg class={`icon ${extra ?? ""}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
