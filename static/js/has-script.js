// Tells the style sheet that scripts run: what needs them is shown, and criteria come one at a time.
document.documentElement.classList.add("has-script");
